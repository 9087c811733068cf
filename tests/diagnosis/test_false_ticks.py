"""No tick where a tensor or layer was left on the CPU: healthy programs with one of their moves taken out.

DEVTRACE_MUTANTS=all pytest tests/diagnosis/test_false_ticks.py      every move of every program; else a few of them
"""

from __future__ import annotations

import os
import random
import re
from contextlib import redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

import devtrace
from devtrace.api.results import Report
from folders import TESTS

_MOVE: Final = re.compile(r"\.to\((?:self\.)?device\)|, device=(?:self\.)?device\b|(?<=\()device=(?:self\.)?device\b")
SAMPLE: Final = 8


class Mutant(NamedTuple):
    """A program without one of its moves."""

    file: Path
    start: int
    end: int

    @property
    def text(self) -> str:
        whole = self.file.read_text()
        return whole[: self.start] + whole[self.end :]


def mutants() -> list[Mutant]:
    files = sorted((TESTS / "zoo").glob("*.py"))
    every = [Mutant(file, *found.span()) for file in files for found in _MOVE.finditer(file.read_text())]
    return every if os.environ.get("DEVTRACE_MUTANTS") == "all" else random.Random(2026).sample(every, SAMPLE)


def report_of(text: str, path: Path) -> Report:
    path.write_text(text)
    names: dict[str, Any] = {"__name__": "mutant"}
    exec(compile(text, path, "exec"), names)
    with suppress(Exception), redirect_stdout(StringIO()), devtrace.record(simulate="cuda:1") as recording:
        names["run"]("cuda:0")
    return recording.report


def elsewhere(report: Report) -> tuple[int, int]:
    """Return the ops that computed on the CPU and the copies: what a move that is missing can add to."""
    return sum(row.cpu_compute for row in report.ledger), sum(row.copies for row in report.ledger)


@pytest.mark.parametrize("mutant", mutants(), ids=lambda mutant: f"{mutant.file.stem}-{mutant.start}")
@pytest.mark.filterwarnings("ignore")
def test_a_missing_move_leaves_no_tick(mutant: Mutant, tmp_path: Path) -> None:
    without = report_of(mutant.text, tmp_path / "without.py")
    if without.all_clear:  # the move did nothing that another does not: nothing is left behind
        whole = report_of(mutant.file.read_text(), tmp_path / "whole.py")
        assert all(less <= more for less, more in zip(elsewhere(without), elsewhere(whole), strict=True))
