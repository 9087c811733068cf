"""A dtype error that the program catches and goes on from is a note; one that ends it stays an error."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from torch import nn

import devtrace
from devtrace.diagnosis.findings import Finding
from failing import culprit_of
from warm import Warm

CAUGHT = "The program caught the error and went on."


def findings(program: Callable[[], object]) -> tuple[str, list[Finding]]:
    recording = devtrace.record()
    with suppress(BaseException), recording:
        program()
    return recording.report.outcome, [each for each in recording.report.findings if each.rule == "dtype-mismatch"]


def half_first() -> torch.Tensor:
    """Try what few kernels take, and do it as all do."""
    layer, x = nn.Linear(4, 2), torch.rand(3, 4, dtype=torch.bfloat16)
    try:
        return layer(x)  # type: ignore[no-any-return]
    except RuntimeError:
        return layer(x.float())  # type: ignore[no-any-return]


def whichever_works() -> None:
    table = torch.rand(5, 2)
    for rows in (torch.tensor([0.0, 1.0]), torch.tensor([0, 1])):
        with suppress(IndexError, RuntimeError):
            table.index_select(0, rows)


def a_cast_on_demand() -> list[torch.Tensor]:
    total, found = torch.zeros(3), []
    for part in (torch.ones(3), torch.ones(3).double()):
        try:
            total.index_add_(0, torch.arange(3), part)
        except RuntimeError as error:
            print("cast for", error)
            total.index_add_(0, torch.arange(3), part.float())
        found.append(total.clone())
    return found


@pytest.mark.parametrize("program", [half_first, whichever_works, a_cast_on_demand])
def test_an_error_that_the_program_goes_on_from_is_a_note(program: Callable[[], object]) -> None:
    outcome, (found,) = findings(program)
    assert outcome == "ended"
    assert found.severity == "note"
    assert found.message.endswith(CAUGHT)
    assert culprit_of(found).name


def test_the_report_names_what_ends_the_program_later_and_the_caught_error_stays_a_note() -> None:
    with suppress(IndexError), devtrace.record() as recording:
        half_first()
        [][0]
    report = recording.report
    assert [(each.rule, each.severity) for each in report.findings] == [("dtype-mismatch", "note")]
    assert "IndexError" in str(report)


def raised_as_another() -> None:
    try:
        nn.Linear(4, 2)(torch.rand(3, 4).double())
    except RuntimeError as error:
        raise ValueError("no step") from error


def left_by_a_code() -> None:
    try:
        nn.Linear(4, 2)(torch.rand(3, 4).double())
    except RuntimeError as error:
        print(error)
        sys.exit(3)


def raised_once_more() -> None:
    layer = nn.Linear(4, 2)
    for attempt in range(3):
        try:
            layer(torch.rand(3, 4).double())
        except RuntimeError:
            if attempt == 2:
                raise


@pytest.mark.parametrize("program", [raised_as_another, left_by_a_code, raised_once_more])
def test_an_error_that_ends_the_program_by_another_way_is_an_error(program: Callable[[], object]) -> None:
    outcome, (found,) = findings(program)
    assert outcome.startswith("failed: ")
    assert found.severity == "error"
    assert CAUGHT not in found.message


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_error_that_ends_a_thread_is_an_error() -> None:
    def program() -> None:
        thread = threading.Thread(target=lambda: nn.Linear(4, 2)(torch.rand(3, 4).double()))
        thread.start()
        thread.join()

    _, (found,) = findings(program)
    assert found.severity == "error"


def test_a_device_error_that_is_caught_stays_an_error() -> None:
    with devtrace.record(simulate="cuda:1") as recording, suppress(RuntimeError):
        nn.Linear(4, 2).to("cuda")(torch.rand(3, 4))
    found = recording.report.findings[0]
    assert (found.rule, found.severity) == ("device-mismatch", "error")


def test_a_run_ends_well_and_fix_leaves_the_program_as_it_is(warm: Warm, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import torch\nlayer = torch.nn.Linear(4, 2)\nx = torch.rand(3, 4).double()\n"
        "try:\n    y = layer(x)\nexcept RuntimeError:\n    y = layer(x.float())\nprint(y.shape)\n"
    )
    ran = warm.devtrace(tmp_path, "run", "program.py")
    assert ran.returncode == 0
    assert CAUGHT in " ".join(ran.stderr.split())
    fixed = warm.devtrace(tmp_path, "fix", "--costs", "program.py")
    assert (fixed.returncode, fixed.stdout) == (0, "")
