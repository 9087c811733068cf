"""Bugs of dtype, a folder for each cause: the tensor, its birth, the line that failed, the cause and the fix."""

from __future__ import annotations

from pathlib import Path

from corpus_programs import Program, at, dtype_programs, one_a_cause
from devtrace.diagnosis.edits import applied
from devtrace.diagnosis.slugs import CASTS
from devtrace.words.wrapping import columns
from folders import TESTS
from goldens import assert_golden
from programs import run, run_in, run_untraced
from warm import Warm

HOST = ("cpu",)
PROGRAMS = dtype_programs()
each = one_a_cause(PROGRAMS)


def test_each_cause_of_a_dtype_has_a_program() -> None:
    own = {"numpy-boundary", "autocast-off", "python-number", "target-dtype", "not-registered", "stale-copy"}
    assert {program.cause for program in PROGRAMS} == {*CASTS.values(), *own}


@each
def test_a_failure_over_dtypes_is_explained(program: Program, warm: Warm) -> None:
    outcome = run(warm, program.folder / "bug.py", HOST)
    assert program.expected["raised"] in outcome.raised
    (finding,) = outcome.errors
    assert finding.culprit is not None
    assert {
        "rule": finding.rule,
        "cause": finding.cause,
        "culprit": finding.culprit.name,
        "dtype": finding.culprit.dtype,
        "born": at(finding.culprit.born),
        "failed": at(finding.site),
        "fix": [f"{Path(edit.file).name}:{edit.line}" for edit in finding.edits],
    } == {"cause": program.cause, **{key: value for key, value in program.expected.items() if key != "raised"}}


@each
def test_the_report_reads_like_its_golden(program: Program, warm: Warm) -> None:
    outcome = run(warm, program.folder / "bug.py", HOST)
    assert_golden(f"dtypes/programs/{program.cause}/{program.name}/report.txt", f"{outcome.text}\n", TESTS)
    assert max(map(len, outcome.text.splitlines())) <= 100
    assert not outcome.notes


@each
def test_the_report_in_chinese_reads_like_its_golden(program: Program, warm: Warm) -> None:
    outcome = run_in("zh", warm, program.folder / "bug.py", HOST)
    assert_golden(f"dtypes/programs/{program.cause}/{program.name}/report.zh.txt", f"{outcome.text}\n", TESTS)
    assert max(map(columns, outcome.text.splitlines())) <= 100


@each
def test_the_edits_make_the_program_run_clean(program: Program, warm: Warm, tmp_path: Path) -> None:
    (finding,) = run(warm, program.folder / "bug.py", HOST).errors
    assert finding.edits
    (tmp_path / "bug.py").write_text(applied((program.folder / "bug.py").read_text(), finding.edits))
    repaired = run(warm, tmp_path / "bug.py", HOST)
    assert (repaired.raised, repaired.alarms) == ("", [])


@each
def test_the_program_with_its_authors_fix_raises_no_alarm(program: Program, warm: Warm, tmp_path: Path) -> None:
    repaired = run(warm, program.with_fix(tmp_path), HOST)
    assert (repaired.raised, repaired.alarms) == ("", [])


@one_a_cause([each for each in PROGRAMS if each.cause != "stale-copy"])
def test_a_failure_that_nobody_recorded_has_the_same_cause(program: Program, warm: Warm) -> None:
    (finding,) = run_untraced(warm, program.folder / "bug.py", HOST).errors
    assert finding.culprit is not None
    found = (finding.cause, finding.culprit.name, finding.culprit.dtype, at(finding.site))
    assert found == (program.cause, *(program.expected[key] for key in ("culprit", "dtype", "failed")))
