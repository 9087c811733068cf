"""The corpus once more, with nothing recorded: the hooks alone, then `devtrace.explain` of the error."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from corpus_programs import FAILING, at, one_a_cause
from devtrace.diagnosis.findings import Edit, Finding
from programs import Outcome, Program
from warm import Warm

LEAST = 0.96
failing = one_a_cause(FAILING)


def points(program: Program, outcome: Outcome) -> dict[str, bool]:
    """Return whether the tensor, its birth (or the line to change), the failing line, the devices and the cause fit."""
    expected = program.expected
    if len(outcome.errors) != 1:
        return dict.fromkeys(("name", "born", "failed", "devices", "cause"), False)
    (finding,) = outcome.errors
    culprit = finding.culprit
    made = {_line(edit) for edit in finding.edits} | ({at(culprit.born)} if culprit and culprit.born else set())
    return {
        "name": culprit is not None
        and any(_fits(name, expected["culprit"]) for name in (culprit.name, *culprit.names)),
        "born": bool(made & {expected["born"], *expected["fix"], *program.lines_of_fix()}),
        "failed": finding.site is not None and at(finding.site) == expected["failed"],
        "devices": {*finding.devices} == {*expected["devices"]},
        "cause": finding.cause == program.cause,
    }


def _line(edit: Edit) -> str:
    return f"{Path(edit.file).name}:{edit.line}"


def _fits(name: str, wanted: str) -> bool:
    """Return whether the last parts of two names are the same: `model.head.weight`, `self.head.weight`."""
    one, other = _parts(name), _parts(wanted)
    shorter = min(len(one), len(other))
    return shorter > 0 and one[-shorter:] == other[-shorter:] and (shorter > 1 or one == other or one[-1] != "weight")


def _parts(name: str) -> list[str]:
    return [part for part in re.split(r"[.\[\]'\"]+", re.sub(r"^[\w.<>]+:(?=\w)", "", name)) if part and part != "self"]


@failing
def test_an_error_that_nobody_recorded_gets_no_wrong_cause(program: Program, warm: Warm) -> None:
    outcome = program.outcome(warm, "untraced")
    assert program.expected["raised"] in outcome.raised
    (finding,) = outcome.errors
    assert finding.cause in (program.cause, "unknown")


@failing
def test_what_was_read_is_never_seen(program: Program, warm: Warm) -> None:
    outcome = program.outcome(warm, "untraced")
    (finding,) = outcome.errors
    assert outcome.text.count("this code ran untraced") == 1
    assert _is_honest(finding)


def _is_honest(finding: Finding) -> bool:
    return finding.culprit is None or finding.culprit.certainty == "inferred" or "robabl" not in finding.message


@pytest.mark.breadth
def test_nearly_all_of_the_corpus_is_explained(warm: Warm) -> None:
    marks = {program.name: points(program, program.outcome(warm, "untraced")) for program in FAILING}
    earned = sum(sum(each.values()) for each in marks.values())
    missed = {name: [part for part, hit in each.items() if not hit] for name, each in marks.items()}
    assert earned >= LEAST * 5 * len(FAILING), {name: parts for name, parts in missed.items() if parts}
