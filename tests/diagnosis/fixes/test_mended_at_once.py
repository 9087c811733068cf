"""One edit mends all: what callers combine goes along, and what an attribute gets anew is made where it belongs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from devtrace.diagnosis.findings import Finding
from failing import both, culprit_of, edits_of, error_of, explained, fails

GPU = "cuda:0"


class Window:
    def __init__(self, n: int, device: torch.device) -> None:
        self.n, self.device = n, device
        self.start()

    def start(self) -> None:
        self.best = torch.full((self.n,), 9.0)

    def settle(self, field: Tensor) -> Tensor:
        return torch.minimum(field, self.best)


def an_object_that_knows_its_device() -> None:
    Window(4, torch.device(GPU)).settle(torch.ones(4, device=GPU))


class Fit:
    def __init__(self, net: nn.Module) -> None:
        self.net = net

    def run(self, x: Tensor) -> Tensor:
        rows: Tensor = self.net(x)
        self.prior = torch.eye(rows.shape[1])
        return self.add(rows)

    def add(self, rows: Tensor) -> Tensor:
        return rows @ self.prior


def a_method_that_computed_on_the_device() -> None:
    Fit(nn.Linear(3, 2).to(GPU)).run(torch.ones(4, 3, device=GPU))


class Gain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.chosen: dict[str, Tensor] = {}

    def choose(self, sound: Tensor) -> None:
        self.chosen["shift"] = torch.randn(len(sound), device=sound.device)
        self.chosen["gain"] = torch.distributions.Uniform(0.5, 2.0).sample((len(sound),))

    def forward(self, sound: Tensor) -> Tensor:
        self.choose(sound)
        return sound * self.chosen["gain"] + self.chosen["shift"] * self.chosen["gain"]


def a_dictionary_that_each_call_fills_anew() -> None:
    Gain().to(GPU)(torch.ones(4, device=GPU))


@both
@pytest.mark.parametrize(
    ("program", "name"),
    [
        (an_object_that_knows_its_device, "self.best"),
        (a_method_that_computed_on_the_device, "self.prior"),
        (a_dictionary_that_each_call_fills_anew, 'self.chosen["gain"]'),
    ],
)
def test_what_a_method_makes_and_keeps_was_created_without_a_device(
    found: Callable[[Callable[[], None]], Finding], program: Callable[[], None], name: str
) -> None:
    error = found(program)
    assert error.cause == "created-without-device"
    assert name in culprit_of(error).names


@pytest.mark.parametrize(
    ("program", "edit"),
    [
        (an_object_that_knows_its_device, "self.best = torch.full((self.n,), 9.0, device=self.device)"),
        (a_method_that_computed_on_the_device, "self.prior = torch.eye(rows.shape[1], device=rows.device)"),
        (
            a_dictionary_that_each_call_fills_anew,
            'self.chosen["gain"] = torch.distributions.Uniform(0.5, 2.0).sample((len(sound),)).to(sound.device)',
        ),
    ],
)
def test_what_is_kept_is_made_on_the_device_where_it_is_kept(program: Callable[[], None], edit: str) -> None:
    assert edits_of(error_of(program)) == [edit]


class Grid(nn.Module):
    def __init__(self, n: int) -> None:
        super().__init__()
        self.n, self.rows = n, None
        if n:
            self.rows = torch.linspace(0, 1, n)
        self.last = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.last(x) * self.rows
        return out


@both
def test_a_buffer_gets_its_name_above_a_line_that_gives_it_with_others(
    found: Callable[[Callable[[], None]], Finding],
) -> None:
    (edit,) = edits_of(found(lambda: Grid(4).to(GPU)(torch.ones(2, 4, device=GPU))))
    assert edit == 'self.register_buffer("rows", None, persistent=False)'


def weighed(x: Tensor, weights: Tensor) -> Tensor:
    return x @ weights


class Sum(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.where = nn.Linear(4, 4), "cpu"
        self.rows = [torch.ones(4, 4)]

    def forward(self, x: Tensor) -> Tensor:
        total = torch.zeros(2, 4, device=self.where)
        for weights in self.rows:
            total += weighed(self.first(x), weights)
        return total


def test_what_a_caller_adds_the_result_to_is_moved_too() -> None:
    lines = edits_of(error_of(lambda: Sum().to(GPU)(torch.ones(2, 4, device=GPU))))
    assert any("torch.zeros(2, 4, device=x.device)" in line for line in lines), lines
    assert len(lines) == 2


def filled(mask: Tensor, scores: Tensor) -> Tensor:
    full = torch.zeros(mask.shape)
    full[mask] = scores
    return full


def test_a_mask_of_the_cpu_may_index_what_an_edit_moves() -> None:
    mask = torch.tensor([True, False, True])
    assert edits_of(error_of(lambda: filled(mask, torch.ones(2, device=GPU)))) == [
        "full = torch.zeros(mask.shape, device=scores.device)"
    ]


class Turn(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return torch.flip(x, (1,)), torch.zeros(len(x))


class Stretch(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.by = nn.Parameter(torch.ones(3))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x * self.by, self.by.log().sum().expand(len(x))


def chained(parts: nn.ModuleList, x: Tensor) -> Tensor:
    total = torch.zeros(len(x))
    for part in parts:
        x, volume = part(x)
        total += volume
    return total


@fails(
    edits=[
        "total = torch.zeros(len(x), device=x.device)",
        "return torch.flip(x, (1,)), torch.zeros(len(x), device=x.device)",
    ]
)
def test_what_an_earlier_round_made_is_made_on_the_device_too() -> None:
    chained(nn.ModuleList([Turn(), Stretch()]).to(GPU), torch.ones(2, 3, device=GPU))


class Pose:
    def __init__(self, turn: Tensor, device: Any = "cpu") -> None:
        self.matrix = torch.eye(3, device=device)
        edge = torch.zeros(3, device=device)
        self.matrix = self.matrix + torch.outer(turn, edge)


def pose() -> None:
    torch.set_default_device(GPU)
    try:
        angles = torch.tensor([0.0, 0.1, 0.2])
        Pose(angles.sin())
    finally:
        torch.set_default_device(None)


def test_what_nothing_but_a_default_device_put_elsewhere_is_odd_where_a_line_asks_for_the_cpu() -> None:
    error = error_of(pose)
    assert (error.cause, culprit_of(error).name) == ("default-device", "turn")
    assert "default device" in error.message
    assert edits_of(error) == ['angles = torch.tensor([0.0, 0.1, 0.2], device="cpu")']


def joined() -> None:
    rows = []
    for _ in range(2):
        rows.append(torch.arange(3.0))
    torch.ones(6, device=GPU) + torch.cat(rows)


def test_an_item_of_a_list_was_created_where_it_was_appended() -> None:
    error = explained(joined)
    assert error.cause in ("created-without-device", "never-moved")
    assert any("rows.append(torch.arange(3.0))" in site.text for site in culprit_of(error).chain)
