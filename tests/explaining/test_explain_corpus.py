"""The corpus once more, with nothing recorded: the hooks alone, then `devtrace.explain` of the error."""

from __future__ import annotations

import re
from pathlib import Path

from corpus_programs import FAILING, at, one_a_cause
from devtrace.diagnosis.findings import Edit, Finding
from programs import Program
from warm import Warm

GAPS = {"sharded_rows": {"cause"}}
"""What is not known without a recording: of shards on two devices, the source does not show which one is meant."""
failing = one_a_cause(FAILING)


def missed(program: Program, finding: Finding) -> set[str]:
    """Return which of the tensor, its birth (or the line to change), the failing line, devices and cause do not fit."""
    expected, culprit = program.expected, finding.culprit
    made = {_line(edit) for edit in finding.edits} | ({at(culprit.born)} if culprit and culprit.born else set())
    fits = {
        "name": culprit is not None
        and any(_fits(name, expected["culprit"]) for name in (culprit.name, *culprit.names)),
        "born": bool(made & {expected["born"], *expected["fix"], *program.lines_of_fix()}),
        "failed": finding.site is not None and at(finding.site) == expected["failed"],
        "devices": {*finding.devices} == {*expected["devices"]},
        "cause": finding.cause == program.cause,
    }
    return {part for part, is_so in fits.items() if not is_so}


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
def test_an_error_that_nobody_recorded_is_explained_and_gets_no_wrong_cause(program: Program, warm: Warm) -> None:
    outcome = program.outcome(warm, "untraced")
    assert program.expected["raised"] in outcome.raised
    (finding,) = outcome.errors
    assert missed(program, finding) == GAPS.get(program.name, set())
    assert finding.cause in (program.cause, "unknown")


@failing
def test_what_was_read_is_never_seen(program: Program, warm: Warm) -> None:
    outcome = program.outcome(warm, "untraced")
    (finding,) = outcome.errors
    assert outcome.text.count("this code ran untraced") == 1
    assert _is_honest(finding)


def _is_honest(finding: Finding) -> bool:
    return finding.culprit is None or finding.culprit.certainty == "inferred" or "robabl" not in finding.message
