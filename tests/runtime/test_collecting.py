"""While devtrace works, Python's collector waits: it would walk all of a large program's objects again and again."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
import torch

import devtrace
from devtrace.runtime.interrupts import no_collecting


@contextmanager
def eager_collector() -> Iterator[list[int]]:
    """Collect at every hundredth object, and yield a list of the generations that were."""
    found: list[int] = []

    def noted(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            found.append(info["generation"])

    before = gc.get_threshold()
    gc.set_threshold(100, 2, 2)
    gc.callbacks.append(noted)
    try:
        yield found
    finally:
        gc.callbacks.remove(noted)
        gc.set_threshold(*before)


def fail(found: list[int]) -> None:
    """Fail, and forget what was collected before."""
    try:
        torch.ones(2, device="cuda:0") + torch.ones(2)
    finally:
        found.clear()


def test_nothing_is_collected_while_a_recording_becomes_its_report() -> None:
    recording = devtrace.record(simulate="cuda:1")
    with eager_collector() as found, suppress(RuntimeError), recording:
        fail(found)
    assert recording.report.findings
    assert len(found) <= 2  # what waited, once it is over


def test_nothing_is_collected_while_an_error_is_explained() -> None:
    explain = devtrace.explain  # is imported here
    with devtrace.simulate("cuda:1"), eager_collector() as found, pytest.raises(RuntimeError) as caught:
        fail(found)
    with devtrace.simulate("cuda:1"), eager_collector() as found:
        report = explain(caught.value)
    assert report.findings
    assert len(found) <= 2


@pytest.mark.parametrize("is_on", [True, False])
def test_the_collector_is_left_as_the_program_had_it(is_on: bool) -> None:
    if not is_on:
        gc.disable()
    try:
        with no_collecting():
            assert not gc.isenabled()
        assert gc.isenabled() == is_on
    finally:
        gc.enable()
