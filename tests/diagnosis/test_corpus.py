"""Device bugs, a folder for each cause: the tensor, its birth, the line that failed, the devices, cause and fix."""

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
    PROGRAMS,
    SHOWN_IN_CHINESE,
    Program,
    costs_of,
    dtype_programs,
    one_a_cause,
    summary,
)
from devtrace.diagnosis.edits import applied
from devtrace.diagnosis.slugs import RuleSlug
from devtrace.words.wrapping import columns
from documents import PAGES
from folders import TESTS
from goldens import assert_golden
from programs import run, run_in
from warm import Warm

each = one_a_cause(PROGRAMS)
failing = one_a_cause(FAILING)
costly = pytest.mark.parametrize("program", COSTLY, ids=lambda program: program.name)


def test_each_cause_has_a_program() -> None:
    table = re.search(r"^\| cause \|.*\n((?:\|.*\n)+)", PAGES["findings.md"], re.M)
    assert table is not None
    causes = set(re.findall(r"^\| `([a-z-]+)`", table[1], re.M))
    programs = {program.cause for program in (*PROGRAMS, *dtype_programs())}
    assert programs == causes - {"unknown"} | {COSTS}


@failing
def test_a_failure_is_explained(program: Program, warm: Warm) -> None:
    outcome = program.outcome(warm)
    assert re.search(program.expected["raised"], outcome.raised)
    (finding,) = outcome.errors
    assert {"cause": finding.cause, **summary(finding)} == {
        "cause": program.cause,
        **{key: program.expected[key] for key in summary(finding)},
    }


@pytest.mark.parametrize("rule", make_docs.COSTS)
def test_the_example_of_a_cost_in_the_docs_shows_a_finding_of_its_rule(rule: RuleSlug, warm: Warm) -> None:
    outcome = Program(CORPUS / COSTS / make_docs.COSTS[rule]).outcome(warm)
    assert rule in {finding.rule for finding in outcome.findings if finding.severity == "warning"}


@each
def test_the_report_reads_like_its_golden(program: Program, warm: Warm) -> None:
    outcome = program.outcome(warm)
    assert_golden(f"corpus/{program.cause}/{program.name}/report.txt", f"{outcome.text}\n", TESTS)
    assert max(map(len, outcome.text.splitlines())) <= 100
    assert not outcome.notes


@one_a_cause(SHOWN_IN_CHINESE)
def test_the_report_in_chinese_reads_like_its_golden(program: Program, warm: Warm) -> None:
    outcome = run_in("zh", warm, program.folder / "bug.py", program.arguments)
    assert_golden(f"corpus/{program.cause}/{program.name}/report.zh.txt", f"{outcome.text}\n", TESTS)
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
    for path in program.folder.glob("*.py"):
        edits = [edit for edit in finding.edits if Path(edit.file).name == path.name]
        (tmp_path / path.name).write_text(applied(path.read_text(), edits))
    repaired = run(warm, tmp_path / "bug.py", program.arguments)
    assert (repaired.raised, repaired.alarms) == ("", [])


@failing
def test_the_fix_is_where_its_author_made_it_or_the_reason_is_written_down(program: Program) -> None:
    same = bool(program.lines_of_fix() & set(program.expected["fix"]))
    assert same != bool(program.expected.get("why", {}).get("fix"))


@costly
def test_costs_are_counted_exactly(program: Program, warm: Warm) -> None:
    outcome = program.outcome(warm)
    assert costs_of(outcome) == program.expected["findings"]


@each
def test_the_fixed_program_raises_no_alarm(program: Program, warm: Warm, tmp_path: Path) -> None:
    repaired = run(warm, program.with_fix(tmp_path), program.arguments)
    assert (repaired.raised, repaired.alarms) == ("", [])
