"""Edits of how a class keeps its tensors and layers: attributes set by name, mixed containers, records that copy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import pytest
import torch
from torch import nn

from devtrace.diagnosis.findings import Finding
from failing import both, culprit_of, edits_of, error_of, explained

GPU = "cuda:0"


class Grids(nn.Module):
    def __init__(self, *scales: int) -> None:
        super().__init__()
        self.scales, self.proj = scales, nn.ModuleList(nn.Linear(scale, 3) for scale in scales)
        for scale in scales:
            setattr(self, f"grid_{scale}", torch.linspace(-1, 1, scale))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        grids = [getattr(self, f"grid_{scale}") for scale in self.scales]
        return sum((p(x[:, : len(g)] * g) for p, g in zip(self.proj, grids, strict=True)), torch.zeros_like(x[:, :3]))


class Schedule(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(5, 5)
        for name, power in {"signal": 1.0, "noise": 0.5}.items():
            setattr(self, name, torch.arange(1, 6) ** power)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        drawn: torch.Tensor = self.net(x) * self.signal + self.noise
        return drawn


@dataclass
class Cloud:
    points: torch.Tensor
    normals: torch.Tensor

    def to(self, device: str) -> Cloud:
        return replace(self, points=self.points.to(device))


@dataclass
class Pair:
    words: torch.Tensor
    weights: torch.Tensor

    def cuda(self) -> Pair:
        return replace(self, words=self.words.cuda())


def grids() -> None:
    Grids(4, 8).to(GPU)(torch.rand(2, 8, device=GPU))


def schedule() -> None:
    Schedule().to(GPU)(torch.rand(2, 5, device=GPU))


def cloud() -> None:
    both = Cloud(torch.rand(5, 3), torch.rand(5, 3)).to(GPU)
    torch.cat((both.points, both.normals), dim=1)


def pair() -> None:
    both = Pair(torch.rand(5), torch.rand(5)).cuda()
    torch.dot(both.words, both.weights)


@both
@pytest.mark.parametrize(
    ("program", "edit"),
    [
        (grids, 'self.register_buffer(f"grid_{scale}", torch.linspace(-1, 1, scale), persistent=False)'),
        (schedule, "self.register_buffer(name, torch.arange(1, 6) ** power, persistent=False)"),
    ],
)
def test_an_attribute_that_is_set_by_name_is_registered_by_that_name(
    found: Callable[..., Finding], program: Callable[[], None], edit: str
) -> None:
    assert edits_of(found(program)) == [edit]


@pytest.mark.parametrize(
    ("program", "edit"),
    [
        (cloud, "return replace(self, points=self.points.to(device), normals=self.normals.to(device))"),
        (pair, "return replace(self, words=self.words.cuda(), weights=self.weights.cuda())"),
    ],
)
def test_a_record_that_copies_itself_takes_the_field_that_it_forgot_and_never_calls_itself(
    program: Callable[[], None], edit: str
) -> None:
    assert edits_of(error_of(program)) == [edit]
    assert "self.to(" not in "".join(edits_of(explained(program)))


class Tracker:
    def __init__(self) -> None:
        self.sums: dict[str, torch.Tensor] = {}

    def watch(self, layer: nn.Module, name: str) -> None:
        self.sums[name] = torch.zeros(4)

        def hook(module: nn.Module, args: object, output: torch.Tensor) -> None:
            self.sums[name].add_(output.detach().sum(0))

        layer.register_forward_hook(hook)


def by_hooks() -> None:
    means = {}

    def watch(name: str) -> Callable[..., None]:
        means[name] = torch.zeros(4)

        def hook(module: nn.Module, args: object, output: torch.Tensor) -> None:
            means[name].mul_(0.9).add_(0.1 * output.detach().mean(0))

        return hook

    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    for name, layer in net.named_children():
        layer.register_forward_hook(watch(name))
    net.to(GPU)(torch.rand(2, 4, device=GPU))


def by_a_tracker() -> None:
    net, tracker = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)), Tracker()
    for name, layer in net.named_children():
        tracker.watch(layer, name)
    net.to(GPU)(torch.rand(2, 4, device=GPU))


@both
@pytest.mark.parametrize("program", [by_hooks, by_a_tracker])
def test_no_line_asks_a_container_for_what_is_put_in_later(
    found: Callable[..., Finding], program: Callable[[], None]
) -> None:
    lines = edits_of(found(program))
    assert not [line for line in lines if '["0"]' in line or '["1"]' in line]
    assert len(lines) <= 1


class Memory(NamedTuple):
    h: torch.Tensor
    c: torch.Tensor


class State(NamedTuple):
    keys: torch.Tensor
    values: torch.Tensor


def a_cell() -> None:
    cell, memory = nn.LSTMCell(4, 3).to(GPU), Memory(torch.zeros(2, 3), torch.zeros(2, 3))
    cell(torch.rand(2, 4, device=GPU), memory)


def joined() -> None:
    state, new = State(torch.ones(2, 3), torch.ones(2, 3)), torch.ones(1, 3, device=GPU)
    torch.cat((*state, new))


@pytest.mark.parametrize(("program", "name"), [(a_cell, "memory.h"), (joined, "state.keys")])
def test_the_fields_of_a_named_tuple_are_named_where_nobody_recorded(program: Callable[[], None], name: str) -> None:
    found = explained(program)
    assert culprit_of(found).name == name
