"""`make site`: the folder that mkdocs makes the site of, and the check of what it made.

    python tools/make_site.py prepare       build/site-pages, from docs/, README.md and the notebooks
    python tools/make_site.py check         fails on a link of build/site that leads to nothing

The pages are docs/ as they are; notebooks are pages with the views of their saved reports (tools/site_notebooks.py).
The site asks for nothing from outside, and is read and searched without a server too.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

import site_notebooks

ROOT: Final = Path(__file__).parents[1]
PAGES: Final = ROOT / "build" / "site-pages"
SITE: Final = ROOT / "build" / "site"
ASSETS: Final = ROOT / "tools" / "site"
OF_THE_REPOSITORY: Final = ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "CODE_OF_CONDUCT.md")


def prepare() -> None:
    shutil.rmtree(PAGES, ignore_errors=True)
    shutil.copytree(ROOT / "docs", PAGES)
    for page in PAGES.rglob("*.md"):
        page.write_text(_with_notebooks(page.read_text(encoding="utf-8")), encoding="utf-8")
    shutil.copytree(ASSETS, PAGES / "assets")
    for name in OF_THE_REPOSITORY:
        (PAGES / name).write_text(_within_the_site((ROOT / name).read_text(encoding="utf-8")), encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (PAGES / "index.md").write_text(_within_the_site(readme), encoding="utf-8")
    for path in sorted((ROOT / "src" / "devtrace").glob("*.schema.json")):
        shutil.copy(path, PAGES)
    site_notebooks.write(PAGES)
    for program in sorted((PAGES / "cards").glob("*.py")):
        _run_card(program)


def _run_card(program: Path) -> None:
    """Leave the report of a program that fails beside it: a page that opens without a kernel."""
    page = program.with_suffix(".html")
    command = [sys.executable, "-m", "devtrace", "run", "--simulate", "cuda:1", "--html", page.name, program.name]
    paths = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    subprocess.run(command, cwd=program.parent, env=paths, check=False, capture_output=True)
    if not page.exists():
        sys.exit(f"{program.name}: got no {page.name}, expected the report of its error; run it by hand to see why")


def _with_notebooks(text: str) -> str:
    """Let links of a page of docs/ lead to the pages of notebooks, which are one folder higher in the repository."""
    return re.sub(r"\((?:\.\./)((?:\.\./)*notebooks/[\w/-]+)\.ipynb\)", r"(\1.md)", text)


def _within_the_site(text: str) -> str:
    """Let links that lead from the top of the repository lead from the top of the site; others become plain words."""
    text = re.sub(r"(?<=[(\"])docs/", "", text)
    text = re.sub(r"\((notebooks/[\w/-]+)\.ipynb\)", r"(\1.md)", text)
    return re.sub(r"\[([^\]]*)\]\(((?!https?:|#|notebooks/)[^)]+)\)", _kept_if_there, text)


def _kept_if_there(match: re.Match[str]) -> str:
    path = match[2].partition("#")[0]
    known = (PAGES / path).exists() or path in OF_THE_REPOSITORY
    return match[0] if known else match[1]


class _Links(HTMLParser):
    """Targets of a page, and what in it can be led to."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.ids: set[str] = set()
        self.fetched: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.ids |= {value for name in ("id", "name") if (value := values.get(name))}
        self.targets += [value for name in ("href", "src") if (value := values.get(name))]
        self.fetched |= {value for value in (values.get("src"), tag == "link" and values.get("href")) if value}


def dead_links(site: Path = SITE) -> Iterator[str]:
    """Yield each link of a page that leads to nothing within the site, and each file asked for from outside."""
    pages = {path: _read(path) for path in sorted(site.rglob("*.html"))}
    for path, links in pages.items():
        for target in links.targets:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                if target in links.fetched and parts.scheme != "data":
                    yield f"{path.relative_to(site)}: {target} comes from outside"
                continue
            there = _file(path, site, unquote(parts.path))
            fragments = {parts.fragment, unquote(parts.fragment)}
            led_to = there not in pages or parts.fragment == "" or fragments & pages[there].ids
            if not (there.is_file() and led_to):
                yield f"{path.relative_to(site)}: {target}"


def _file(page: Path, site: Path, path: str) -> Path:
    if not path:
        return page
    there = (site / path.lstrip("/") if path.startswith("/") else page.parent / path).resolve()
    return there / "index.html" if there.is_dir() else there


def _read(path: Path) -> _Links:
    links = _Links()
    links.feed(path.read_text(encoding="utf-8"))
    return links


def main(what: str) -> int:
    if what == "prepare":
        prepare()
        return 0
    dead = [link for link in dead_links() if not link.startswith("404.html")]
    print("\n".join(dead) or f"site: {len(list(SITE.rglob('*.html')))} pages in {SITE.relative_to(ROOT)}, no dead link")
    return 1 if dead else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
