"""Bugs of devices and dtypes, a folder for each cause: the tensor, its birth, the line that failed, cause and fix."""

from __future__ import annotations

import re
from pathlib import Path

import make_docs
import pytest

from corpus_programs import (
    CORPUS,
    COSTLY,
    COSTS,
    FAILING,
    OF_DTYPES,
    PROGRAMS,
    SHOWN_IN_CHINESE,
    assert_explains,
    costs_of,
    one_a_cause,
)
from devtrace.diagnosis.slugs import RuleSlug
from devtrace.words.wrapping import columns
from documents import PAGES
from folders import TESTS
from goldens import assert_golden
from programs import Program
from warm import Warm

each = one_a_cause([*PROGRAMS, *OF_DTYPES])
failing = one_a_cause([*FAILING, *OF_DTYPES])
costly = pytest.mark.parametrize("program", COSTLY, ids=lambda program: program.name)


def test_each_cause_has_a_program() -> None:
    table = re.search(r"^\| cause \|.*\n((?:\|.*\n)+)", PAGES["causes.md"], re.M)
    assert table is not None
    causes = set(re.findall(r"^\| \[`([a-z-]+)`\]", table[1], re.M))
    programs = {program.cause for program in (*PROGRAMS, *OF_DTYPES)}
    assert programs == causes - {"unknown"} | {COSTS}


@failing
def test_a_failure_is_explained(program: Program, warm: Warm) -> None:
    outcome = program.outcome(warm)
    assert program.expected["raised"] in outcome.raised
    (finding,) = outcome.errors
    of_kind = "dtype" if program in OF_DTYPES else "devices"
    assert program.expected.keys() >= {"rule", "culprit", of_kind, "born", "failed", "fix"}
    assert_explains(finding, program.cause, program.expected)


@pytest.mark.parametrize("rule", make_docs.COSTS)
def test_the_example_of_a_cost_in_the_docs_shows_a_finding_of_its_rule(rule: RuleSlug, warm: Warm) -> None:
    outcome = Program(CORPUS / COSTS / make_docs.COSTS[rule] / "bug.py").outcome(warm)
    assert rule in {finding.rule for finding in outcome.findings if finding.severity == "warning"}


@each
def test_the_report_reads_like_its_golden(program: Program, warm: Warm) -> None:
    outcome = program.outcome(warm)
    assert_golden(f"{program.folder.relative_to(TESTS)}/report.txt", f"{outcome.text}\n", TESTS)
    assert max(map(len, outcome.text.splitlines())) <= 100
    assert not outcome.notes


@one_a_cause([*SHOWN_IN_CHINESE, *OF_DTYPES])
def test_the_report_in_chinese_reads_like_its_golden(program: Program, warm: Warm) -> None:
    outcome = program.outcome(warm, "zh")
    assert_golden(f"{program.folder.relative_to(TESTS)}/report.zh.txt", f"{outcome.text}\n", TESTS)
    assert max(map(columns, outcome.text.splitlines())) <= 100


@each
def test_a_statement_has_one_warning_of_what_costs_time(program: Program, warm: Warm) -> None:
    warned = [f for f in program.outcome(warm).findings if f.severity == "warning" and f.count > 1 and f.site]
    lines = [(finding.site.file, finding.site.line) for finding in warned if finding.site is not None]
    assert len(lines) == len(set(lines))


@failing
def test_the_edits_make_the_program_run_clean(program: Program, warm: Warm, tmp_path: Path) -> None:
    (finding,) = program.outcome(warm).errors
    assert finding.edits
    repaired = program.edited(finding.edits, tmp_path).outcome(warm)
    assert (repaired.raised, repaired.alarms) == ("", [])


@one_a_cause(FAILING)
def test_the_fix_is_where_its_author_made_it_or_the_reason_is_written_down(program: Program) -> None:
    same = bool(program.lines_of_fix() & set(program.expected["fix"]))
    assert same != bool(program.expected.get("why", {}).get("fix"))


@costly
def test_costs_are_counted_exactly(program: Program, warm: Warm) -> None:
    outcome = program.outcome(warm)
    assert costs_of(outcome) == program.expected["findings"]


@each
def test_the_fixed_program_raises_no_alarm(program: Program, warm: Warm, tmp_path: Path) -> None:
    repaired = program.with_fix(tmp_path).outcome(warm)
    assert (repaired.raised, repaired.alarms) == ("", [])
