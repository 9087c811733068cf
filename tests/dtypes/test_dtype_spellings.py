"""Bugs of dtype as people spell them, a function each, with comments that say what is expected of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from corpus_programs import DTYPES, assert_explains
from loaded import programs_in
from programs import GPU, Mode, Program
from warm import Warm

pytestmark = pytest.mark.one_in(8)


def programs_of(folder: str) -> pytest.MarkDecorator:
    programs = [Program(path, function=name) for name, path in programs_in(DTYPES / folder).items()]
    return pytest.mark.parametrize("program", programs, ids=lambda program: program.name)


@programs_of("spellings")
def test_the_report_names_tensor_lines_and_cause_and_its_edits_work(
    program: Program, warm: Warm, tmp_path: Path
) -> None:
    (finding,) = program.outcome(warm).errors
    assert_explains(finding, program.expected["cause"], program.expected)
    repaired = program.edited(finding.edits, tmp_path).outcome(warm)
    assert (repaired.raised, repaired.alarms) == ("", [])


@programs_of("spellings")
def test_the_error_alone_shows_the_cause_too(program: Program, warm: Warm) -> None:
    (finding,) = program.outcome(warm, "untraced").errors
    assert_explains(finding, program.expected["untraced"], {"dtype": program.expected["dtype"]})


@pytest.mark.parametrize("mode", ["recorded", "untraced"])
@pytest.mark.parametrize("name", ["numpy_of_an_action", "numpy_of_scores"])
def test_what_numpy_refuses_of_an_accelerators_tensor_is_found_in_its_copy(name: str, mode: Mode, warm: Warm) -> None:
    (finding,) = Program(DTYPES / "spellings" / "targets.py", GPU, function=name).outcome(warm, mode).errors
    assert (finding.rule, finding.cause) == ("dtype-mismatch", "target-dtype")
    assert [edit.after for edit in finding.edits if ".cpu().float().numpy()" in edit.after]


@programs_of("advice")
def test_a_cast_that_would_lose_what_is_meant_is_no_edit(program: Program, warm: Warm) -> None:
    for outcome in (program.outcome(warm), program.outcome(warm, "untraced")):
        (finding,) = outcome.errors
        assert_explains(
            finding, program.expected["cause"], {word: program.expected[word] for word in ("culprit", "dtype")}
        )
        assert (bool(finding.help), finding.edits) == (True, ())


@programs_of("healthy")
def test_mixed_precision_that_is_meant_has_no_finding(program: Program, warm: Warm) -> None:
    outcome = program.outcome(warm)
    assert (outcome.raised, outcome.findings) == ("", ())


@programs_of("healthy")
def test_mixed_precision_on_a_simulated_device_raises_no_alarm(program: Program, warm: Warm) -> None:
    outcome = replace(program, called=GPU).outcome(warm)
    assert (outcome.raised, outcome.alarms) == ("", [])
