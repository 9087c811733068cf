"""To follow memory changes none of it: counts, peaks, references and what dies when are those of the plain run."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import devtrace

Seen = list[tuple[Any, ...]]


class Program:
    """Tensors that come, lead to others, and go, by a list of numbers."""

    def __init__(self) -> None:
        self.net = nn.Linear(256, 256, device="cuda")
        self.kept: list[torch.Tensor] = []
        self.marks: list[weakref.ref[torch.Tensor]] = []
        self.actions: list[Callable[[int], None]] = [self.make, self.view, self.forward, self.drop, self.step]

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

    def run(self, numbers: list[tuple[int, int]]) -> Seen:
        seen: Seen = []
        for action, number in numbers:
            self.actions[action](number)
            dead = tuple(mark() is None for mark in self.marks)
            references = tuple(sys.getrefcount(tensor) for tensor in self.kept)
            seen.append((torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated(), dead, references))
        return seen


def seen_of(numbers: list[tuple[int, int]], devices: str, recorded: bool) -> tuple[Seen, int]:
    """Return what a program sees of its memory, and what is left when it has gone, before any collection."""
    gc.disable()
    try:
        with devtrace.simulate(devices):
            with devtrace.record() if recorded else nullcontext():
                program = Program()
                seen = program.run(numbers)
                del program
                left = torch.cuda.memory_allocated()
            return seen, left
    finally:
        gc.enable()


@pytest.mark.parametrize("devices", ["cuda:1", "cuda:1,64MB"])
@settings(max_examples=12, deadline=None)
@given(numbers=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 40)), min_size=4, max_size=24))
def test_a_recorded_program_sees_the_memory_of_the_plain_one(devices: str, numbers: list[tuple[int, int]]) -> None:
    assert seen_of(numbers, devices, recorded=True) == seen_of(numbers, devices, recorded=False)
