"""Every notebook is what its source makes, runs, shows what it was committed with, and knows right answers."""

from __future__ import annotations

import copy
import json
import re

import lab
import make_notebooks as notebooks
import nbformat
import pytest
import torch
from nbformat.v4 import new_code_cell

from devtrace.report.mime import MIME_TYPE
from folders import TESTS

ANSWERS = TESTS / "answers"

pytestmark = pytest.mark.notebook

LARGEST = 300 * 1024
STALE = "is stale: run `make notebook-outputs` and read the difference"
MADE = notebooks.all_notebooks()
EACH = [(name, language) for name, made in MADE.items() for language in made]


def committed(name: str, language: str = "en") -> nbformat.NotebookNode:
    node: nbformat.NotebookNode = nbformat.read(notebooks.path_of(name, language), as_version=4)
    return node


def test_there_are_notebooks_and_each_has_a_source() -> None:
    found = {path for path in notebooks.FOLDER.rglob("*.ipynb") if not {".ipynb_checkpoints", lab.OWN} & {*path.parts}}
    assert found == {notebooks.path_of(name, language) for name, language in EACH}
    assert found


CHINESE = re.compile("[\u4e00-\u9fff]")


@pytest.mark.parametrize(("name", "language"), EACH)
def test_a_notebook_has_the_cells_of_its_source(name: str, language: str) -> None:
    cells = [(cell.cell_type, cell.source) for cell in committed(name, language).cells]
    assert cells == [(cell.cell_type, cell.source) for cell in MADE[name][language].cells], f"{name} {STALE}"


@pytest.mark.parametrize(("name", "language"), EACH)
def test_a_notebook_shows_as_much_in_every_language_and_its_reports_in_its_own(name: str, language: str) -> None:
    shown, english = notebooks.outputs(committed(name, language)), notebooks.outputs(committed(name))
    assert [[each.output_type for each in cell] for cell in shown] == [
        [each.output_type for each in cell] for cell in english
    ]
    reports = [each.data["text/plain"] for cell in shown for each in cell if MIME_TYPE in each.get("data", {})]
    assert reports
    assert all(bool(CHINESE.search(each)) == (language == "zh") for each in reports)


@pytest.mark.parametrize(("language", "page"), [("en", "english"), ("zh", "chinese")])
def test_notebook_0_calls_what_is_on_the_screen_as_the_screen_does(language: str, page: str) -> None:
    (name,) = (each for each in MADE if each.startswith("00-"))
    prose = "\n".join(cell.source for cell in MADE[name][language].cells if cell.cell_type == "markdown")
    shown = json.loads((TESTS.parent / "labextension" / "words" / f"{page}.json").read_text("utf-8"))
    tabs = [f"tab.{each}" for each in ("timeline", "modules", "lines", "ops")]
    for key in (*tabs, "fix.try", "fix.insert-untried", "fix.notebook", "fix-all.apply"):
        assert f"*{shown[key]}*" in prose, key
    said = json.loads((TESTS.parent / "src" / "devtrace" / "words" / f"{language}.json").read_text("utf-8"))["report"]
    for key in ("label.created", "label.missed", "label.fix"):
        assert f"**{said[key]}**" in prose, key


@pytest.mark.parametrize(("name", "language"), EACH)
def test_a_notebook_is_small_enough_to_be_shown_on_the_web(name: str, language: str) -> None:
    assert notebooks.path_of(name, language).stat().st_size <= LARGEST


@pytest.mark.one_in(5)
@pytest.mark.parametrize("name", MADE)
def test_a_notebook_runs_and_shows_what_it_shows_here_and_its_exercise_knows_right_from_wrong(name: str) -> None:
    """One kernel for both: it takes longer to start than most answers take to run."""
    answers = answers_to(name)
    made = MADE[name]["en"]
    shown = notebooks.shown(notebooks.execute(with_answers(made, answers)))
    own = len(notebooks.outputs(made))
    verdicts = shown[own + 1 :: 2]
    for answer, verdict in zip(answers, verdicts, strict=True):
        assert (verdict.strip() == "Right.") == (answer.kind == "right"), (answer, verdict)
    if not torch.cuda.is_available():  # outputs are committed as simulated devices give them
        assert shown[:own] == notebooks.shown(committed(name)), f"{name} {STALE}"


def answers_to(name: str) -> list[notebooks.Piece]:
    """Answers to a notebook's exercise: `right` and `wrong` ones, in other words."""
    found = notebooks.pieces((ANSWERS / f"{name}.py").read_text(encoding="utf-8"))
    assert {answer.kind for answer in found} == {"right", "wrong"}
    return found


def with_answers(made: nbformat.NotebookNode, answers: list[notebooks.Piece]) -> nbformat.NotebookNode:
    """A notebook that goes on: each answer in place of the exercise's cell, and the cell that checks it."""
    whole = copy.deepcopy(made)
    *_, check = (cell for cell in made.cells if cell.cell_type == "code")
    for answer in answers:
        whole.cells += [new_code_cell(answer.text), new_code_cell(check.source)]
    return whole
