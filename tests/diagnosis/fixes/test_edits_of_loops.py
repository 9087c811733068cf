"""Edits of variables that loops and comprehensions bind, and of what an object's `to` returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_sequence

from failing import BOTH, Text, edits_of, fails, report_of


class Scale:
    def __init__(self) -> None:
        self.mean = torch.tensor([0.4, 0.5, 0.6]).view(-1, 1, 1)

    def __call__(self, images: torch.Tensor) -> torch.Tensor:
        return images - self.mean


class Flip:
    def __call__(self, images: torch.Tensor) -> torch.Tensor:
        return images.flip(-1)


class Chain:
    def __init__(self, *steps: Callable[[torch.Tensor], torch.Tensor]) -> None:
        self.steps = list(steps)

    def __call__(self, images: torch.Tensor) -> torch.Tensor:
        for step in self.steps:
            images = step(images)
        return images


def test_what_one_object_of_a_loop_has_is_not_moved_of_all_of_them() -> None:
    chain = Chain(Flip(), Scale())
    error = report_of(lambda: chain(torch.rand(2, 3, 4, 4, device="cuda:0"))).findings[0]
    assert edits_of(error)
    assert not any("step.mean" in line for line in edits_of(error))


def new_member() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 3))


def votes(device: str) -> torch.Tensor:
    members = [new_member() for _ in range(2)]
    for member in members:
        member.to(device)
    members.append(new_member())
    x = torch.rand(5, 4).to(device)
    return torch.stack([member(x) for member in members])


def test_the_variable_of_a_comprehension_is_not_that_of_a_loop_above_it() -> None:
    error = report_of(lambda: votes("cuda:0")).findings[0]
    assert not any("member.to(" in line for line in edits_of(error))


def packed_states(device: str) -> torch.Tensor:
    net = nn.GRU(3, 5).to(device)
    packed: Any = pack_sequence([torch.rand(n, 3) for n in (5, 3, 2)])
    packed.to(device)
    return torch.as_tensor(net(packed)[1])


@fails(edits=["packed = packed.to(device)"], message=Text("`packed[0]` is on cpu"))
def test_a_packed_sequence_whose_move_was_dropped_is_kept() -> None:
    packed_states("cuda:0")


def states(device: str) -> torch.Tensor:
    net = nn.LSTM(3, 5).to(device)
    x = torch.rand(4, 2, 3)
    return torch.as_tensor(net(x)[0])


@fails(edits=["x = torch.rand(4, 2, 3).to(device)"])
def test_the_first_state_that_a_recurrent_layer_makes_is_where_its_moved_input_is() -> None:
    states("cuda:0")


def rows(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.rand(count, 5, 3), torch.zeros(count)


def test_the_input_of_a_recurrent_layer_is_moved_in_its_call() -> None:
    def program(device: str) -> None:
        net = nn.GRU(3, 4).to(device)
        x, _ = rows(4)
        net(x)

    assert edits_of(report_of(lambda: program("cuda:0")).findings[0]) == ["net(x.to(device))"]


class Averaged:
    def __init__(self, net: nn.Module) -> None:
        self.shadow = {name: p.detach().cpu().clone() for name, p in net.named_parameters()}

    @contextmanager
    def scope(self, net: nn.Module) -> Iterator[None]:
        for name, p in net.named_parameters():
            p.data = self.shadow[name]
        yield


def averaged_scores(device: str) -> torch.Tensor:
    net = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 1)).to(device)
    averaged = Averaged(net)
    with averaged.scope(net), torch.no_grad():
        return torch.as_tensor(net(torch.rand(5, 4, device=device)))


def test_a_model_is_not_moved_below_the_line_that_only_made_what_replaced_its_parameters() -> None:
    error = report_of(lambda: averaged_scores("cuda:0")).findings[0]
    assert "net.to(device)" not in edits_of(error)


class Positions(nn.Module):
    ids: torch.Tensor | None

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(32, 6)
        self.register_buffer("ids", None, persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.ids is None:
            self.ids = torch.arange(x.shape[1])
        return torch.as_tensor(x + self.table(self.ids))


@fails(cause="attached-after-move", message=Text("before `net.0.ids` was attached"))
def test_a_buffer_that_a_call_made_is_what_was_attached_and_not_its_layer() -> None:
    net = nn.Sequential(Positions(), nn.Linear(6, 1)).to("cuda")
    net(torch.rand(2, 5, 6, device="cuda"))


class Waves(nn.Module):
    def forward(self, t: torch.Tensor) -> torch.Tensor:
        bands = torch.arange(4, device=t.device)
        return torch.outer(t.float(), bands).cos()


def ramp(levels: torch.Tensor) -> torch.Tensor:
    grid = torch.linspace(0, 1, 4, device=levels.device)
    return torch.maximum(levels[:, None], grid)


@pytest.mark.parametrize("embed", [Waves(), ramp])
@fails(*BOTH, edits=["steps = torch.full((2,), step, device=device)"])
def test_what_is_made_on_the_device_of_a_moved_tensor_moves_with_it(embed: Callable[..., torch.Tensor]) -> None:
    device = "cuda:0"
    head = nn.Linear(4, 1).to(device)
    for step in range(3):
        steps = torch.full((2,), step)
        head(embed(steps))


@fails(*BOTH, edits=["total = total + (rows * weight).sum()"])
def test_what_is_only_computed_with_stays_where_it_is_without_a_copy() -> None:
    weight, total = torch.ones(4, device="cuda:0"), torch.zeros((), device="cuda:0")
    for rows in torch.ones(2, 3, 4, device="cuda:0"):
        total = total + (rows.cpu() * weight).sum()


@fails(*BOTH, edits=["rows.clone().add_(weight)"])
def test_what_is_written_into_stays_where_it_is_as_a_copy() -> None:
    weight = torch.ones(4, device="cuda:0")
    for rows in torch.ones(2, 3, 4, device="cuda:0"):
        rows.cpu().add_(weight)
