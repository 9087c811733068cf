"""`devtrace fix NOTEBOOK.ipynb`: cells are edited in the file, of which every other character stays."""

from __future__ import annotations

import difflib
import json
import subprocess
from pathlib import Path
from typing import Any

import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devtrace.cli.main import main
from devtrace.diagnosis.findings import Edit, Finding
from devtrace.fixing.notebooks.text import NotebookText, parts_of, span_at
from devtrace.fixing.rounds import Change, changed_lines
from devtrace.fixing.source_text import SourceText
from devtrace.words.errors import UsageError
from folders import ROOT

NOTEBOOKS = sorted(ROOT.joinpath("notebooks").glob("*.ipynb"))


def notebook(*cells: Any, **layout: Any) -> NotebookText:
    return NotebookText("a.ipynb", json.dumps({"nbformat": 4, "cells": list(cells)}, **layout).encode())


def code(source: str | list[str], **metadata: Any) -> dict[str, Any]:
    return {"cell_type": "code", "metadata": metadata, "source": source, "outputs": []}


def edit(cell: int, line: int, before: str, after: str) -> Edit:
    return Edit("a.ipynb", cell, line, before, after)


def sources(text: NotebookText) -> list[str]:
    return ["".join(cell["source"]) for cell in json.loads(text.data)["cells"]]


def changed(before: NotebookText, after: NotebookText) -> list[str]:
    compared = difflib.ndiff(before.data.decode().splitlines(), after.data.decode().splitlines())
    return [line for line in compared if line[0] in "+-"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_line_put_into_each_cell_of_a_notebook_adds_one_line_of_the_file_each(path: Path) -> None:
    text = NotebookText(str(path), path.read_bytes())
    count = sum(1 for _ in text._source_spans())
    after = text.edited(Edit(str(path), cell, 0, "", "pass  # 'é'") for cell in range(1, count + 1))
    lines = changed(text, after)
    assert (len(lines), {line[0] for line in lines}) == (count, {"+"})
    assert nbformat.reads(after.data.decode(), as_version=4).cells


@pytest.mark.parametrize(
    "layout", [{"indent": 1}, {"indent": 4, "ensure_ascii": False}, {"separators": (",", ":")}, {}]
)
def test_a_source_keeps_its_layout(layout: dict[str, Any]) -> None:
    before = notebook(code(["a = 'é'\n", "b = 2"]), code("c = 3\nd = 4"), **layout)
    after = before.edited([edit(1, 2, "b = 2", "b = 20"), edit(2, 1, "c = 3", "c = 30")])
    assert after.data == before.data.replace(b"b = 2", b"b = 20").replace(b"c = 3", b"c = 30")


def test_cells_are_counted_as_they_run() -> None:
    text = notebook(
        {"cell_type": "markdown", "metadata": {}, "source": "# x"},
        code(""), code("a = 1"), code("b = 1", tags=["skip-execution"]), code("c = 1"),
    )  # fmt: skip
    assert sources(text.edited([edit(2, 1, "c = 1", "c = 2")]))[-1] == "c = 2"


def test_a_character_that_ends_no_line_of_python_shifts_no_edit_of_a_cell() -> None:
    text = notebook(code(["a = '\u2028", "'\n", "\x0c", "b = 2\n", "c = 3"]))
    assert sources(text.edited([edit(1, 2, "\x0cb = 2", "b = 20")])) == ["a = '\u2028'\nb = 20\nc = 3"]
    after = text.edited([edit(1, 2, "\x0cb = 2", "b = 20")])
    finding = Finding("device-mismatch", "error")
    assert [*changed_lines(Change(finding, {"a.ipynb": text}, {"a.ipynb": after}))] == [("a.ipynb", 1, 2)]


def test_a_cell_with_magics_is_edited_too() -> None:
    text = notebook(code("%matplotlib inline\nx = 1"))
    assert sources(text.edited([edit(1, 2, "x = 1", "x = 2")])) == ["%matplotlib inline\nx = 2"]


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (notebook(code("x = 2")), edit(1, 1, "x = 1", "x = 3")),
        (notebook(code("x = 1")), edit(2, 1, "x = 1", "x = 3")),
        (notebook(code("x = 1")), edit(1, 1, "x = 1", "x = (")),
        (SourceText("a.py", b"x = 1\n"), Edit("a.py", None, 1, "x = 1", "x = (")),
        (NotebookText("a.ipynb", b'{"worksheets": []}'), edit(1, 1, "x = 1", "x = 3")),
        (NotebookText("a.ipynb", b"x = 1"), edit(1, 1, "x = 1", "x = 3")),
    ],
    ids=["a cell changed since", "a cell that is gone", "no program", "no script", "format 3", "no notebook"],
)
def test_an_edit_that_does_not_fit_is_refused(text: SourceText, wrong: Edit) -> None:
    with pytest.raises(UsageError, match="fix-unfit"):
        text.edited([wrong])


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None)
@given(VALUES, st.sampled_from([None, 0, 1, 4]))
def test_the_spans_of_json_are_those_of_its_values(value: Any, indent: int | None) -> None:
    text = f" {json.dumps(value, indent=indent)} "
    spans = parts_of(text, span_at(text, 0))
    parts = value if isinstance(value, dict) else dict(enumerate(value)) if isinstance(value, list) else {}
    assert {key: json.loads(text[span.begin : span.end]) for key, span in spans.items()} == parts


CELLS = (
    "# Two bugs",
    "import torch\nfrom shifts import shift\nweight = torch.ones(3)",
    "x = torch.zeros(3, device='cuda:0')\nx = x * weight\nprint(x)",
    "",
    "bias = torch.ones(3)\nx = x + bias",  # x is of the cell before, and so has a value on the first line, too
    "y = shift(x)\nassert y.device.type == 'cuda'",
)
SHIFTS = "import torch\n\n\ndef shift(x):\n    return x + torch.ones(3)\n"


@pytest.mark.slow
def test_a_notebook_and_a_file_that_it_imports_are_fixed_and_git_takes_the_patch(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    first, *rest = CELLS
    cells = [nbformat.v4.new_markdown_cell(first), *map(nbformat.v4.new_code_cell, rest)]
    path = folder / "train.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    Path("shifts.py").write_text(SHIFTS)
    old = path.read_text()
    assert main(["fix", "train.ipynb"]) == 0
    printed = capfd.readouterr()
    assert "fixed: In[2] line 2: `weight` is on cpu" in printed.err
    assert "fixed: In[3] line 2: `bias` is on cpu" in printed.err
    assert "fixed: shifts.py line 5: " in printed.err
    assert "proven: with the patch, the program ran to its end on 1 simulated device" in printed.err
    assert path.read_text() == old
    subprocess.run(["git", "init", "-q"], check=True)
    subprocess.run(["git", "apply", "-"], check=True, input=printed.out.encode())
    lines = [line for line in difflib.ndiff(old.splitlines(), path.read_text().splitlines()) if line[0] in "+-"]
    assert [line[0] for line in lines] == ["-", "+", "-", "+"]


@pytest.mark.slow
def test_an_error_that_is_no_devices_ends_the_rounds(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    device_error = "torch.ones(3, device='cuda') + torch.ones(3)"
    cells = [*map(nbformat.v4.new_code_cell, ("import torch", "torch.ones(3).shapes", device_error))]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), folder / "a.ipynb")
    assert main(["fix", "a.ipynb"]) == 1
    printed = capfd.readouterr()
    early = "but the program ended early: AttributeError: 'Tensor' object has no attribute 'shapes' (In[2] line 1)."
    assert (printed.out, early in printed.err) == ("", True)
    cells[1].outputs = [nbformat.v4.new_output("error", ename="AttributeError", evalue="'Tensor' ...", traceback=[])]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), folder / "a.ipynb")
    assert main(["fix", "a.ipynb"]) == 0  # the author went on below it
    assert "+    \"torch.ones(3, device='cuda') + torch.ones(3, device=" in capfd.readouterr().out
