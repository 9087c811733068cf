"""The programs of the corpora on a genuine device: found, explained and mended there as on simulated ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

import accelerator
import needs
from accelerator.programs import Runner, spelled
from corpus_programs import COSTLY, FAILING, PROGRAMS, assert_explains, at, costs_of, one_a_cause
from devtrace.diagnosis.findings import Finding
from devtrace.report.mime import MIME_TYPE
from failing import culprit_of
from folders import ROOT, TESTS
from kept_cases import assert_diagnosed_alone
from needs import installed
from programs import Outcome, Program

pytestmark = pytest.mark.slow

SYSTEMS = TESTS / "systems"
NOTEBOOKS = ROOT / "notebooks"
ZOO = TESTS / "zoo"
OF_TORCH = {"mixed", "parallel"}
"""What torch has for devices of its own only: autocast's lists of dtypes, DataParallel."""

failing = one_a_cause(FAILING)
costly = pytest.mark.parametrize("program", COSTLY, ids=lambda program: program.name)


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    missing = accelerator.why_not()
    if missing and not needs.CI:
        pytest.skip(missing)
    assert not missing
    with Runner() as runner:
        yield runner


def outcome_of(program: Program, runner: Runner) -> tuple[Program, Outcome]:
    copy = runner.prepared(program)
    return copy, runner.outcome(copy)


def expected_of(program: Program) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(spelled(json.dumps(program.expected)))
    return found


def edited(program: Program, finding: Finding, folder: Path) -> Program:
    """Copy a program with the edits of a finding."""
    assert all(edit.before != edit.after for edit in finding.edits)
    return program.edited(finding.edits, folder)


@pytest.mark.breadth
def test_a_case_of_a_genuine_device_gets_its_report_without_it_and_without_torch(
    runner: Runner, tmp_path: Path
) -> None:
    copies = [outcome_of(program, runner) for program in FAILING]
    outcomes = [outcome for _, outcome in copies]
    assert_diagnosed_alone([*outcomes, *(runner.outcome(copy, "genuine untraced") for copy, _ in copies)], tmp_path)


@failing
def test_a_failure_is_explained_as_on_simulated_devices(program: Program, runner: Runner) -> None:
    _, outcome = outcome_of(program, runner)
    expected = expected_of(program)
    assert expected["raised"] in outcome.raised
    assert (outcome.notes, outcome.without_line) == ((), ())
    (finding,) = outcome.errors
    assert_explains(finding, program.cause, expected)


@failing
def test_a_failure_that_nobody_recorded_gets_no_wrong_cause(program: Program, runner: Runner) -> None:
    copy, _ = outcome_of(program, runner)
    outcome = runner.outcome(copy, "genuine untraced")
    expected = expected_of(program)
    assert expected["raised"] in outcome.raised
    (finding,) = outcome.errors
    assert finding.cause in (program.cause, "unknown")
    assert {*finding.devices} == {*expected["devices"]}
    assert finding.site is not None
    assert at(finding.site) == expected["failed"]


@failing
def test_the_edits_make_the_program_run_clean(program: Program, runner: Runner, tmp_path: Path) -> None:
    copy, outcome = outcome_of(program, runner)
    (finding,) = outcome.errors
    repaired = runner.outcome(edited(copy, finding, tmp_path))
    assert (repaired.raised, repaired.alarms) == ("", [])


@costly
def test_costs_are_counted_exactly(program: Program, runner: Runner) -> None:
    _, outcome = outcome_of(program, runner)
    assert costs_of(outcome) == program.expected["findings"]


@one_a_cause(PROGRAMS)
def test_the_program_as_its_author_left_it_raises_no_alarm(program: Program, runner: Runner, tmp_path: Path) -> None:
    repaired = runner.outcome(runner.prepared(program.with_fix(tmp_path / "program")))
    assert (repaired.raised, repaired.alarms) == ("", [])


@pytest.mark.one_in(8)
@pytest.mark.parametrize("name", sorted(path.stem for path in ZOO.glob("*.py") if path.stem not in OF_TORCH))
def test_a_healthy_program_raises_no_alarm(name: str, runner: Runner, tmp_path: Path) -> None:
    (tmp_path / "zoo").mkdir()
    path = tmp_path / "zoo" / f"{name}.py"
    path.write_text((ZOO / path.name).read_text())
    outcome = runner.outcome(runner.prepared(Program(path)))
    assert (outcome.raised, outcome.alarms, outcome.notes, outcome.without_line) == ("", [], (), ())


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    ("name", "culprit", "cause"),
    [
        pytest.param(
            "book_classifier", "model.out_head.weight", "attached-after-move", marks=installed("llms_from_scratch")
        ),
        ("ai_toolkit/sampling", "torch.arange(height)[:, None]", "created-without-device"),
        ("ai_toolkit/control", "vae.encoder.weight", "never-moved"),
        ("tagging_finetune", "image_tag", "never-moved"),
    ],
)
def test_a_bug_of_a_real_system_is_explained(
    name: str, culprit: str, cause: str, runner: Runner, tmp_path: Path
) -> None:
    program = runner.prepared(Program(SYSTEMS / f"{name}.py"))
    (finding,) = runner.outcome(program).errors
    assert (culprit_of(finding).name, finding.cause, set(finding.devices)) == (culprit, cause, {"accel:0", "cpu"})
    if finding.edits and {Path(edit.file) for edit in finding.edits} == {program.path}:
        repaired = runner.outcome(edited(program, finding, tmp_path))
        assert (repaired.raised, repaired.errors) == ("", [])


@pytest.mark.one_in(3)
@pytest.mark.parametrize("number", ["00", "04", "06"])
def test_a_notebook_finds_what_it_finds_on_simulated_devices(number: str, runner: Runner) -> None:
    (path,) = NOTEBOOKS.glob(f"{number}-*.ipynb")
    cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    ran = runner.cells([cell.source for cell in cells])
    for cell, seen in zip(cells, ran, strict=True):
        errors = [output.ename for output in cell.outputs if output.output_type == "error"]
        bundles = [output.data for output in cell.outputs if MIME_TYPE in output.get("data", {})]
        assert ([seen.error] if seen.error else []) == errors, cell.source
        assert [facts(found) for found in seen.reports] == [facts(bundle[MIME_TYPE]["findings"]) for bundle in bundles]
    assert not [cell.printed for cell in ran if "simulat" in cell.printed]


def facts(findings: list[dict[str, Any]]) -> list[tuple[object, ...]]:
    return [(each["rule"], each["cause"], each["count"], spelled(str(each["devices"]))) for each in findings]
