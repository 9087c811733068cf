"""Make the notebooks from notebooks/sources: one source a notebook, its code shared by all its languages.

    python tools/make_notebooks.py [NAME ...]     write them again, with outputs (`make notebook-outputs` does all)

A source is Python text in cells, each under a marker line:

    # %% en                    prose in English, as comments; `# %% zh`: the same in Chinese
    # %% code                  runs in every language; words after it are the cell's tags (raises-exception)
    # %% code folded           shown folded: what holds devtrace to the text is no part of the lesson

A notebook is written for each language that its source has prose in: English in notebooks/, others in a folder of
their own.
"""

from __future__ import annotations

import os
import re
import sys
import sysconfig
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode as Node
from nbformat import from_dict
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

FOLDER: Final = Path(__file__).parents[1] / "notebooks"
SOURCES: Final = FOLDER / "sources"
MARKER: Final = re.compile(r"^# %% (\w+)(.*)$", re.M)
HERE: Final = {
    sysconfig.get_path("purelib"): "site-packages",
    sysconfig.get_path("stdlib"): "python",
    str(FOLDER.parent): "devtrace",
    str(Path.home()): "~",
}
KERNEL: Final = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
VOLATILE: Final = (
    (re.compile(r"\x1b\[[0-9;]*m"), ""),
    (re.compile(r"\b\d+(\.\d+)?\s?(ns|us|µs|ms|s)\b"), "<time>"),
    (re.compile(r"0x[0-9a-f]+"), "<address>"),
    (re.compile(r"(/[\w.~-]+)+/"), "<folder>/"),
    (re.compile(r"\bThread-\d+"), "<thread>"),
    (re.compile(r"ipykernel_\d+/\d+\.py"), "<cell>"),
    (re.compile(r"^  File .*, line \d+, in .*\n(?:    .*\n)*", re.M), ""),  # a traceback within a message
)


@dataclass(frozen=True)
class Piece:
    """A cell of a source: prose in one language, or code."""

    kind: str
    tags: tuple[str, ...]
    text: str


def pieces(source: str) -> list[Piece]:
    """Return the cells of a source, in order."""
    marks = list(MARKER.finditer(source))
    ends = [*(mark.start() for mark in marks[1:]), len(source)]
    return [
        Piece(mark[1], tuple(mark[2].split()), source[mark.end() : end].strip("\n"))
        for mark, end in zip(marks, ends, strict=True)
    ]


def languages(found: list[Piece]) -> list[str]:
    return sorted({piece.kind for piece in found} - {"code"})


def notebook(found: list[Piece], language: str) -> Node:
    """Return the notebook of a source in one language, without outputs."""
    cells = [
        _code(piece) if piece.kind == "code" else new_markdown_cell(_prose(piece.text))
        for piece in found
        if piece.kind in ("code", language)
    ]
    for at, cell in enumerate(cells):
        cell["id"] = f"cell-{at}"
    made: Node = new_notebook(cells=cells, metadata={"kernelspec": KERNEL, "language_info": {"name": "python"}})
    return made


def _code(piece: Piece) -> Node:
    folded: dict[str, Any] = {"jupyter": {"source_hidden": True}} if "folded" in piece.tags else {}
    tags = {"tags": list(piece.tags)} if piece.tags else {}
    cell: Node = new_code_cell(piece.text, metadata={**folded, **tags})
    return cell


def _prose(text: str) -> str:
    return "\n".join(line.removeprefix("#").removeprefix(" ") for line in text.splitlines())


def path_of(name: str, language: str) -> Path:
    return FOLDER / f"{name}.ipynb" if language == "en" else FOLDER / language / f"{name}.ipynb"


def all_notebooks() -> dict[str, dict[str, Node]]:
    """Every notebook that the sources make, without outputs, by name and language."""
    made = {}
    for path in sorted(SOURCES.glob("*.py")):
        found = pieces(path.read_text(encoding="utf-8"))
        made[path.stem] = {language: notebook(found, language) for language in languages(found)}
    return made


def execute(made: Node, folder: Path = FOLDER, language: str = "en") -> Node:
    """Run it from top to bottom in a kernel of its own; an error that no tag allows is raised."""
    with tempfile.TemporaryDirectory() as ipython_folder:
        client = NotebookClient(
            made,
            timeout=600,
            startup_timeout=600,
            kernel_name="python3",
            resources={"metadata": {"path": folder}},
            coalesce_streams=True,
        )
        client.execute(env={**os.environ, "IPYTHONDIR": ipython_folder, "DEVTRACE_LANGUAGE": language})
    for cell in made.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = [from_dict(_anywhere(output)) for output in cell.outputs]
    return made


def _anywhere(value: Any) -> Any:
    """Outputs without the folders of the machine that they were made on."""
    if isinstance(value, dict):
        return {key: _anywhere(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_anywhere(item) for item in value]
    if not isinstance(value, str):
        return value
    for here, name_of_folder in HERE.items():
        value = value.replace(here, name_of_folder)
    return value


def shown(made: Node) -> list[str]:
    """Return what each code cell shows as text, without what differs from run to run."""
    return [_stable("\n".join(_texts(cell))) for cell in made.cells if cell.cell_type == "code"]


def _texts(cell: Node) -> list[str]:
    texts = []
    for output in cell.outputs:
        if output.output_type == "stream":
            texts += [output.text] if output.name == "stdout" else []  # what libraries warn of is the machine's
        elif output.output_type == "error":
            texts.append(f"{output.ename}: {output.evalue}")
        else:
            texts.append(output.data.get("text/plain", ""))
    return texts


def _stable(text: str) -> str:
    for pattern, replacement in VOLATILE:
        text = pattern.sub(replacement, text)
    return text


def outputs(made: Node) -> list[list[Node]]:
    return [cell.outputs for cell in made.cells if cell.cell_type == "code"]


def main(names: list[str]) -> None:
    for name, made in all_notebooks().items():
        if names and name not in names:
            continue
        for language, node in made.items():
            execute(node, language=language)
            path = path_of(name, language)
            path.parent.mkdir(exist_ok=True)
            nbformat.write(node, path)
            print(f"{path.relative_to(FOLDER)}: {path.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main(sys.argv[1:])
