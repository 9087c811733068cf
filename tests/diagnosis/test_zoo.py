"""Healthy programs give no error and no warning: a false alarm costs more than a missed bug.

No tick stands under a program of which a tensor or a layer was left on the CPU (`make ticks` draws 500).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from corpus_programs import CORPUS
from folders import TESTS
from mutants import drawn, ending, with_its_fix
from programs import Program, run
from warm import Warm

ZOO = sorted((TESTS / "zoo").glob("*.py"))
each = pytest.mark.parametrize("path", ZOO, ids=lambda path: path.stem)


@pytest.mark.one_in(4)
@each
def test_a_healthy_program_raises_no_alarm(path: Path, warm: Warm) -> None:
    outcome = run(warm, path)
    assert (outcome.raised, outcome.alarms, outcome.notes) == ("", [], ())


@pytest.mark.one_in(4)
@each
def test_a_healthy_program_that_nobody_records_hears_nothing(path: Path, warm: Warm) -> None:
    outcome = run(warm, path, mode="untraced")
    assert (outcome.raised, outcome.text, outcome.findings, outcome.notes) == ("", "", (), ())
    assert "devtrace" not in run(warm, path, mode="installed").text


PROGRAMS = [
    Program(CORPUS / name / "bug.py")
    for name in ("not-registered/fairness_matrix", "stale-copy/ema_shadow", "wrong-device/acting_agent")
]


def test_a_healthy_program_has_a_tick_and_none_that_left_something_on_the_cpu(warm: Warm) -> None:
    healthy = {program: ending(warm, program, with_its_fix(program)) for program in PROGRAMS}
    assert all(each.ticked for each in healthy.values())
    chosen = drawn(warm, PROGRAMS, seed=1, count=14)
    found = {mutant: ending(warm, mutant.program, mutant.text) for mutant in chosen}
    left = [mutant for mutant, each in found.items() if each.does_more_than(healthy[mutant.program])]
    assert len(left) > 7
    assert any(not found[mutant].raised for mutant in left)
    assert [str(mutant) for mutant in left if found[mutant].ticked] == []
