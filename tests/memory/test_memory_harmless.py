"""To follow memory changes none of it: counts, peaks, references and what dies when are those of the plain run."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

import devtrace
from devtrace.runtime.quiet import tensors_alive

Seen = list[tuple[Any, ...]]


class Program:
    """Tensors that come, lead to others, and go, by a list of numbers."""

    def __init__(self) -> None:
        self.net = nn.Linear(256, 256, device="cuda")
        self.kept: list[torch.Tensor] = []
        self.marks: list[weakref.ref[torch.Tensor]] = []
        self.actions: list[Callable[[int], None]] = [
            self.make, self.view, self.forward, self.drop, self.step, self.exhaust,
        ]  # fmt: skip

    def keep(self, tensor: torch.Tensor) -> None:
        self.kept.append(tensor)
        self.marks.append(weakref.ref(tensor))

    def make(self, size: int) -> None:
        self.keep(torch.ones(8 + size, 256, device="cuda"))

    def view(self, which: int) -> None:
        if self.kept:
            self.keep(self.kept[which % len(self.kept)][:1])

    def forward(self, which: int) -> None:
        if self.kept:
            self.keep(self.net(self.kept[which % len(self.kept)]))

    def drop(self, which: int) -> None:
        if self.kept:
            del self.kept[which % len(self.kept)]

    def step(self, size: int) -> None:
        self.net(torch.ones(1 + size, 256, device="cuda")).sum().backward()

    def exhaust(self, times: int) -> None:
        """Ask for more than a limit allows, and go on; who holds what is asked at each error."""
        for _ in range(1 + times % 2):
            with suppress(torch.OutOfMemoryError):
                torch.empty(1 << 28, device="cuda")

    def run(self, numbers: list[tuple[int, int]]) -> Seen:
        seen: Seen = []
        for action, number in numbers:
            self.actions[action](number)
            dead = tuple(mark() is None for mark in self.marks)
            references = tuple(sys.getrefcount(tensor) for tensor in self.kept)
            seen.append((torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated(), dead, references))
        return seen


def of_the_collector() -> tuple[Any, ...]:
    return gc.get_threshold(), len(gc.garbage), gc.isenabled()


def seen_of(numbers: list[tuple[int, int]], devices: str, recorded: bool) -> tuple[Any, ...]:
    """Return what a program sees of its memory, and what is left when it has gone, before any collection."""
    gc.disable()
    try:
        with devtrace.simulate(devices):
            with devtrace.record() if recorded else nullcontext():
                before = of_the_collector()
                tensors, frozen = len(tensors_alive()), gc.get_freeze_count()
                program = Program()
                seen = program.run(numbers)
                del program
                left = torch.cuda.memory_allocated()
                after = of_the_collector()
                more = len(tensors_alive()) - tensors
                is_frozen = gc.get_freeze_count() > frozen  # what earlier tests left there may die meanwhile
            return seen, left, more, is_frozen, before, after
    finally:
        gc.enable()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("devices", ["cuda:1", "cuda:1,64MB"])
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(numbers=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 40)), min_size=4, max_size=24))
def test_a_recorded_program_sees_the_memory_of_the_plain_one(devices: str, numbers: list[tuple[int, int]]) -> None:
    assert seen_of(numbers, devices, recorded=True) == seen_of(numbers, devices, recorded=False)


HOST = """
import resource, sys, torch, devtrace
torch.set_num_threads(1)
def rounds(device):
    for _ in range(6):
        kept = [torch.ones(1 << 20, device=device) for _ in range(24)]
        try:
            kept += [torch.ones(1 << 20, device=device) for _ in range(24)]
        except torch.OutOfMemoryError:
            kept.clear()
with devtrace.simulate("cuda:1,128MB"):
    with devtrace.record() as recording:  # what is loaded counts in both
        torch.ones(4, device="cuda").sum()
    if sys.argv[1] == "recorded":
        with devtrace.record():
            rounds("cuda")
    else:
        rounds("cuda")
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10)
"""


def test_the_peak_of_the_host_is_that_of_the_plain_run() -> None:
    plain, recorded = (
        int(subprocess.run([sys.executable, "-c", HOST, way], capture_output=True, text=True, check=True).stdout)
        for way in ("plain", "recorded")
    )
    assert recorded - plain < 64  # MiB: one round's tensors are 128, and six rounds end with an error that is walked
