"""Each sentence of torch's that refuses a device is explained: which, who asked for it, what there is."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
import torch
from torch import nn

import devtrace
from devtrace.diagnosis.findings import Finding

ONE = "cuda:1"


def found(program: Callable[[], object], simulate: str | None = ONE) -> list[Finding]:
    with suppress(Exception), devtrace.record(simulate) as recording:
        program()
    return [each for each in recording.report.findings if each.severity == "error"]


def asks_by_a_variable() -> None:
    chosen = "cuda:3"
    torch.zeros(3, device=chosen)


def test_who_asked_is_shown_with_what_there_is() -> None:
    (finding,) = found(asks_by_a_variable)
    assert (finding.rule, finding.message) == ("device-refused", "cuda:3 does not exist; there is cuda:0.")
    assert [(line.label, line.site.text) for line in finding.lines] == [("Created", 'chosen = "cuda:3"')]
    assert (finding.help, finding.edits) == ("set `chosen` to a device that exists; it is cuda:3 here", ())


@pytest.mark.parametrize("kind", ["mps", "xpu"])
def test_a_kind_of_device_that_is_not_there_is_named(kind: str) -> None:
    (finding,) = found(lambda: torch.ones(3).to(kind))
    assert finding.message == f"{kind} does not exist; there is cuda:0."


@pytest.mark.parametrize(("simulate", "there"), [(None, "there is cpu"), (ONE, "there is cuda:0")])
def test_a_file_of_a_device_that_is_not_there_is_mapped(simulate: str | None, there: str) -> None:
    saved = file_from("cuda:3")
    (finding,) = found(lambda: torch.load(saved), simulate)
    assert finding.message.endswith(f"which does not exist here; {there}.")
    assert [edit.after.strip() for edit in finding.edits] == [
        '(finding,) = found(lambda: torch.load(saved, map_location="cpu"), simulate)'
    ]


def test_a_device_that_a_line_maps_a_file_to_is_what_it_asks_for_and_not_where_the_file_was_saved() -> None:
    def by_a_text(saved: io.BytesIO) -> None:
        torch.load(saved, map_location="cuda:3")

    def by_a_variable(saved: io.BytesIO) -> None:
        where = torch.device("cuda", 3)
        torch.load(saved, map_location=where)

    def by_names_of_old_devices(saved: io.BytesIO) -> None:
        torch.load(saved, map_location={"cuda:1": "cpu", "cuda:2": "cuda:3"})

    said = []
    for program, origin in ((by_a_text, "cpu"), (by_a_variable, "cpu"), (by_names_of_old_devices, "cuda:2")):
        (finding,) = found(partial(program, file_from(origin)), ONE)
        assert finding.message == "cuda:3 does not exist; there is cuda:0."
        assert not finding.edits
        said += [line.site.text for line in finding.lines]
    assert said == ['where = torch.device("cuda", 3)']


def test_a_device_that_a_file_is_mapped_from_is_not_asked_for() -> None:
    saved, other = file_from("cuda:3"), file_from("cuda:3")
    (finding,) = found(lambda: torch.load(saved, map_location={"cuda:1": "cpu"}))
    assert finding.message == "The file was saved from cuda:3, which does not exist here; there is cuda:0."
    (finding,) = found(lambda: torch.load(other, map_location={"cuda:3": "cuda:5", "cuda:2": "cpu"}))
    assert finding.message == "cuda:5 does not exist; there is cuda:0."


def file_from(device: str) -> io.BytesIO:
    saved = io.BytesIO()
    with devtrace.simulate("cuda:4"):
        torch.save(torch.ones(3, device=device), saved)
    saved.seek(0)
    return saved


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, use 'spawn'",
            "A forked process cannot use cuda, because its parent has used it already.",
        ),
        (
            "aten.mm.default: got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to DTensor",
            "This op got plain tensors beside DTensors.",
        ),
        ("Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 40", "Ranks 1 and 0 use the same GPU."),
    ],
)
def test_what_only_jobs_and_processes_raise_is_explained(text: str, message: str) -> None:
    names: dict[str, Any] = {}
    exec(compile(f"def of_torch(x): raise RuntimeError({text!r})", f"{torch.__path__[0]}/made.py", "exec"), names)
    of_torch = names["of_torch"]
    (finding,) = found(lambda: of_torch(torch.ones(2)))
    assert (finding.rule, finding.message) == ("device-refused", message)


def test_memory_of_a_device_that_is_to_be_pinned_is_no_error_of_another_kind() -> None:
    device = torch.device("cuda")
    (finding,) = found(lambda: torch.zeros(3, device=device, pin_memory=True))
    assert finding.message == "This line asks for pinned memory on a device; only memory of the CPU can be pinned."
    assert found(lambda: torch.zeros(3, pin_memory=True).to(device, non_blocking=True)) == []


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_dtype_is_no_device_and_a_rule_of_its_own(device: str) -> None:
    def program() -> None:
        nn.Conv1d(1, 1, 1).to(device)(torch.ones(1, 1, 3, dtype=torch.float64, device=device))

    assert [finding.rule for finding in found(program)] == ["dtype-mismatch"]


def takes_the_first_that_is_there() -> torch.Tensor:
    for device in ("mps", "cuda:3", "cuda:0"):
        with suppress(RuntimeError, AssertionError):
            return torch.zeros(2, device=device)
    return torch.zeros(2)


def falls_back_to_another() -> torch.Tensor:
    try:
        state = torch.full((2,), 0.5, device=torch.device("mps"))
    except NotImplementedError as error:
        print("no such device:", error)
        state = torch.empty(2, device="cuda")
    return state


@pytest.mark.parametrize("program", [takes_the_first_that_is_there, falls_back_to_another])
def test_a_device_that_a_program_tries_and_does_without_is_a_note(program: Callable[[], object]) -> None:
    with devtrace.record(ONE) as recording:
        program()
    noted = [each for each in recording.report.findings if each.rule == "device-refused"]
    assert noted
    assert {(each.severity, each.help, each.edits) for each in noted} == {("note", "", ())}
    assert all(each.message.endswith("The program caught the error and went on.") for each in noted)


def test_a_device_that_is_tried_and_ends_the_program_all_the_same_is_an_error() -> None:
    def program() -> None:
        try:
            torch.zeros(2, device="cuda:4")
        except RuntimeError as error:
            raise ValueError("no device") from error

    assert [each.rule for each in found(program)] == ["device-refused"]
