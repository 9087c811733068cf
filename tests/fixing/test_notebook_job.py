"""A notebook that is open in a page is fixed in a process of its own, while its kernel goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from devtrace.fixing.notebooks.fix import NotebookFix, wait_for
from devtrace.fixing.notebooks.state import first_state

CELLS = (
    ("a", "import torch\nfrom torch import nn\nimport helpers\ndevice = 'cuda:0'"),
    ("b", "net = nn.Linear(8, 8).to(device)\nnet.head = nn.Linear(8, 2)"),
    ("empty", "  \n"),
    ("c", "rows = torch.ones(3, 8)"),
    ("d", "print('here', helpers.SCALE)\nnet.head(net(rows)).detach().numpy()"),
)
Ask = Callable[..., NotebookFix]


@pytest.fixture
def fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NotebookFix:
    (tmp_path / "helpers.py").write_text("SCALE = 2\n")
    monkeypatch.chdir(tmp_path)
    return NotebookFix(lambda: None, {}, {"broken": "'missing'"})


def asked(cells: tuple[tuple[str, str], ...]) -> list[dict[str, Any]]:
    return [{"cell": cell, "source": source} for cell, source in cells]


def test_all_bugs_on_the_way_are_fixed_and_the_cells_to_run_again_are_named(fix: NotebookFix, tmp_path: Path) -> None:
    reader = fix.begin(asked(CELLS), "cuda:1")
    lines = list(wait_for(fix, reader, {"b": "In[2]", "c": "In[3]", "d": "In[4]"}))
    assert fix.state is not None
    assert fix.state["state"] == "proven"
    assert [bug["cell"] for bug in fix.state["bugs"]] == ["d", "d", "d"]
    changed = {each["cell"]: each["after"] for each in fix.state["changed"]}
    assert changed["d"].endswith(".detach().cpu().numpy()")
    assert set(changed) <= set(fix.state["run"])
    assert fix.state["run"][-1] == "d"
    assert lines[0] == "run 1"
    proven = "✓ Proven: with these changes the notebook ran to its end on 1 simulated device; the same output and "
    assert lines[-1].startswith(proven)
    assert "  In[4] line 2" in lines
    assert [path.name for path in tmp_path.glob("*.ipynb")] == []


def test_a_cell_in_the_words_of_a_bug_has_the_number_of_the_readers_kernel(fix: NotebookFix) -> None:
    hunks = [{"cell": cell, "file": "", "line": 1, "before": "", "after": "x"} for cell in "ab"]
    bug = {"message": "In[2] moved `x`.", "help": "move it above In[1] line 4, not In[3]", "hunks": hunks}
    fix.state = {**first_state(), "state": "proven", "cells": ["a", "b"], "bugs": [bug]}
    ended = threading.Thread()
    lines = list(wait_for(fix, ended, {"a": "In[12]", "b": "In[7]"}))
    assert lines[0] == "✗ In[7] moved `x`."
    assert "  Fix: move it above In[12] line 4, not In[3]" in lines


@pytest.mark.breadth
def test_a_fix_of_the_cells_as_far_as_one_names_that_and_is_no_proof_of_the_rest(fix: NotebookFix) -> None:
    fix.begin(asked(BUG), "cuda:1", as_far=True).join()
    assert fix.state is not None
    assert fix.state["closing"].startswith("✓ Proven: with these changes the notebook ran as far as In[2] on 1 sim")
    assert fix.state["closing"].endswith(". What is below In[2] was not run: “Fix again” runs it too.")


def test_what_cannot_be_fixed_is_named_with_what_was_found(fix: NotebookFix) -> None:
    cells = (("a", "import torch\nx = torch.ones(3, device='cuda:0')"), ("b", "{}['missing']"))
    reader = fix.begin(asked(cells), "cuda:1")
    *_, closing = wait_for(fix, reader, {"b": "In[7]"})
    assert "early: KeyError: 'missing' (In[7] line 1). What comes after that was not run" in closing
    assert fix.state is not None
    assert (fix.state["state"], fix.state["changed"]) == ("left", [])


def test_a_run_that_is_cancelled_changes_nothing_and_its_process_ends(fix: NotebookFix) -> None:
    reader = fix.begin(asked((("a", "import time\ntime.sleep(600)"),)), "cuda:1")
    fix.cancel()
    reader.join()
    assert fix.state is not None
    assert (fix.state["state"], fix.state["changed"]) == ("cancelled", [])


BUG = (
    ("a", "import torch\nx = torch.ones(3)"),
    ("b", "y = torch.ones(3, device='cuda:0') + x"),
)


def test_cells_that_ran_by_hand_once_they_were_changed_are_no_longer_left_to_run(fix: NotebookFix) -> None:
    fix.begin(asked((*BUG, ("c", "print(y)"))), "cuda:1").join()
    assert fix.state is not None
    left, texts = [], {"b": BUG[1][1], "c": "print(y)", "a": fix.state["changed"][0]["after"]}
    fix._namespace, fix._took, fix._raised = {}, {}, {}
    for number, (cell, raised) in enumerate([("b", ""), ("a", ""), ("b", "KeyError"), ("b", ""), ("c", "")]):
        fix._took.pop(cell, None)
        fix._namespace[f"_i{number}"], fix._took[cell], fix._raised[cell] = texts[cell], 1.0, raised
        fix.cell_ended()
        left.append(fix.state["run"])
    assert left == [["a", "b", "c"], ["b", "c"], ["b", "c"], ["c"], []]


class Names(Mapping[str, object]):
    """A kernel's names, and what happens at the moment in which they are read."""

    def __init__(self, happens: Callable[[], None]) -> None:
        self.happens = happens

    def __getitem__(self, name: str) -> object:
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        self.happens()
        return iter(())

    def __len__(self) -> int:
        return 0


def test_a_fix_that_is_cancelled_as_its_end_comes_is_cancelled(folder: Path) -> None:
    cancelled = NotebookFix(lambda: None, Names(lambda: cancelled.cancel()), {})
    cancelled.begin(asked(BUG), "cuda:1").join()
    assert cancelled.state is not None
    assert (cancelled.state["state"], cancelled.state["changed"]) == ("cancelled", [])


@pytest.mark.breadth
def test_a_fault_of_ours_ends_a_fix_with_its_name(folder: Path) -> None:
    def fault() -> None:
        raise ZeroDivisionError("once")

    fix = NotebookFix(lambda: None, Names(fault), {})
    fix.begin(asked(BUG), "cuda:1").join()
    assert fix.state is not None
    assert (fix.state["state"], fix.state["closing"]) == ("failed", "ZeroDivisionError: once")


def test_no_cell_runs_twice_but_those_from_the_first_that_changes(fix: NotebookFix, tmp_path: Path) -> None:
    ran = "print(In[-1][-1], file=open('ran', 'a'))"
    slow = f"import time, torch\ntime.sleep(1.2)\n{ran}  # 1"
    cells = (
        ("a", slow),
        ("b", f"x = torch.ones(3)\n{ran}  # 2"),
        ("c", f"y = torch.ones(3, device='cuda:0') + x\n{ran}  # 3"),
    )
    fix.begin(asked(cells), "cuda:1").join()
    assert fix.state is not None
    assert fix.state["state"] == "proven"
    ran_by = (tmp_path / "ran").read_text().split()
    assert {cell: ran_by.count(cell) for cell in "123"} == {"1": 2, "2": 3, "3": 2}  # the reference runs each once more


@pytest.mark.breadth
def test_the_same_line_in_two_cells_is_fixed_in_both(fix: NotebookFix) -> None:
    twin = "x = torch.ones(3)\ny = y + x"
    cells = (("a", "import torch\ny = torch.ones(3, device='cuda:0')"), ("b", twin), ("broken", "{}['x']"), ("c", twin))
    fix.begin(asked(cells), "cuda:1").join()
    assert fix.state is not None
    assert (fix.state["state"], [each["cell"] for each in fix.state["changed"]]) == ("proven", ["b", "c"])
