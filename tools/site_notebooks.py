"""Notebooks and the gallery as pages of the site: prose that is searched, code, and reports that are live."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
NOTEBOOKS: Final = ROOT / "notebooks"
VIEWS: Final = ROOT / "src" / "devtrace" / "static" / "views.js"
MIME_TYPE: Final = "application/vnd.devtrace.v1+json"
_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")
_INTRO: Final = (
    "Each is shown as it was run, with its live reports. `make lab` opens copies that you may run and save. "
    "0 to 5, 8 and 9 are also in Chinese."
)


def notebooks() -> list[Path]:
    """Return the notebooks in the order of the menu, from their folder."""
    found = [path.relative_to(NOTEBOOKS) for path in NOTEBOOKS.rglob("*.ipynb")]
    return sorted((path for path in found if "sources" not in path.parts), key=lambda path: (len(path.parts), path))


def write(pages: Path) -> None:
    """Write a page for each notebook, one that lists them, and the gallery."""
    (pages / "assets").mkdir(exist_ok=True)
    shutil.copy(VIEWS, pages / "assets")
    rows = []
    for path in notebooks():
        book = json.loads((NOTEBOOKS / path).read_text(encoding="utf-8"))
        target = pages / "notebooks" / path.with_suffix(".md")
        target.parent.mkdir(parents=True, exist_ok=True)
        title = "".join(book["cells"][0]["source"]).splitlines()[0].removeprefix("# ")
        target.write_text(_page(title, _cells(book), len(path.parts)), encoding="utf-8")
        rows.append(f"- [{title}]({path.with_suffix('.md').as_posix()})")
    (pages / "notebooks" / "index.md").write_text(
        "\n".join([f"# Notebooks\n\n{_INTRO}\n", *rows, ""]), encoding="utf-8"
    )
    (pages / "gallery.md").write_text(_page("Gallery", _gallery(), 0), encoding="utf-8")


def _page(title: str, parts: Iterable[str], depth: int) -> str:
    head = f"---\ntitle: {json.dumps(title.replace('`', ''), ensure_ascii=False)}\nhide: [toc]\n---"
    views = f'<script src="{"../" * depth}assets/{VIEWS.name}"></script>'
    return "\n\n".join([head, views, *parts, ""])


def _gallery() -> Iterator[str]:
    import gallery

    yield "# Gallery"
    yield "What the views show of the traces that the tests keep, odd ones among them, light and dark."
    for path in gallery.golden_traces():
        yield f"## {path.stem}"
        trace = json.loads(path.read_text(encoding="utf-8"))
        yield from (mounted(trace, theme) for theme in gallery.THEMES)


def _cells(book: dict[str, Any]) -> Iterator[str]:
    for cell in book["cells"]:
        text = "".join(cell["source"])
        if cell.get("metadata", {}).get("jupyter", {}).get("source_hidden"):
            continue
        if cell["cell_type"] == "markdown":
            yield re.sub(r"\.ipynb\b(?=[)#])", ".md", text)
        elif text:
            count = cell["execution_count"]
            yield _block(text, "python", f"In [{count}]" if count else "")
            yield from filter(None, map(_output, cell["outputs"]))


def _block(text: str, language: str = "text", title: str = "") -> str:
    """Return text as a fenced block; a fence that stands in it does not end it."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    head = f'{language} title="{title}"' if title else language
    return f"{fence}{head}\n{text.rstrip()}\n{fence}"


def _output(output: dict[str, Any]) -> str:
    """Return what a cell showed: its report with live views, else its text."""
    data = output.get("data", {})
    if trace := data.get(MIME_TYPE):
        return mounted(trace)
    text = "".join(output.get("text") or data.get("text/plain") or [])
    text = text or "\n".join(output.get("traceback", []))
    return _block(_COLOURS.sub("", text)) if text.strip() else ""


def mounted(trace: Any, theme: str = "") -> str:
    """Return an element, and the call that mounts a report's views in it; a theme of its own has its ground."""
    import gallery

    text = json.dumps(trace).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    ground = f' data-dt-theme="{theme}" style="background: {gallery.THEMES[theme]}; padding: 12px"' if theme else ""
    call = f"devtraceMount(document.currentScript.previousElementSibling,{text})"
    return f'<div class="devtrace-report"{ground}></div><script>{call}</script>'
