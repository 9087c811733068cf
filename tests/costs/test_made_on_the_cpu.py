"""What a step makes on the CPU and sends: noise of a sampler, masks of constants, tensors of a few numbers in a row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from costs import GPU, descend, healthy, warnings, warns
from failing import Text

STATES = [[0.1 * at, 0.2, 0.3] for at in range(5)]


def _langevin() -> None:
    energy, x = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)).to(GPU), torch.zeros(16, 4, device=GPU)
    for _ in range(20):
        x = x.detach().requires_grad_()
        (slope,) = torch.autograd.grad(energy(x).sum(), x)
        x = x - 0.1 * slope + torch.empty(x.shape).normal_().to(x.device) * 0.3


def _mask_of_constants() -> None:
    net = nn.Linear(64, 2).to(GPU)
    for at in range(15):
        mask = torch.ones(8, 8)
        mask[at % 5 : at % 5 + 3, 2:5] = 0
        net((torch.randn(4, 8, 8, device=GPU) * mask.to(GPU)).flatten(1))


class Shaken(nn.Linear):
    """A layer whose weight is shaken."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        shift = torch.rand(*self.weight.shape)
        return nn.functional.linear(input, self.weight + shift.to(GPU) * 0.01, self.bias)


def _of_drawn_data(layer: nn.Module) -> None:
    net = nn.Sequential(nn.Linear(8, 4), layer).to(GPU)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(20):
        x = torch.rand(16, 8).to(GPU)
        descend(optimizer, net(x).square().mean())


def _noise_on_a_weight() -> None:
    _of_drawn_data(Shaken(4, 4))


@pytest.mark.parametrize(
    "program",
    [
        _langevin,
        _mask_of_constants,
        _noise_on_a_weight,
    ],
)
def test_what_a_step_makes_of_factories_alone_is_made_on_the_device(program: Callable[[], None]) -> None:
    (found,) = warnings(program)
    assert found.rule == "host-to-device-copy"
    assert "is made on the CPU and copied in each step" in found.message
    assert "create it on the device: `torch." in found.help


def _drawn_data_of_a_recurrence() -> None:
    inner, outer, h = nn.Linear(8, 4).to(GPU), nn.Linear(4, 4).to(GPU), torch.zeros(16, 4, device=GPU)
    for _ in range(20):
        x = torch.randn(16, 8).to(GPU)
        h = torch.tanh(inner(x) + outer(h))


def _data_written_into_zeros() -> None:
    net = nn.Linear(6, 2).to(GPU)
    for at in range(20):
        x = torch.zeros(1, 6)
        x[0, at % 6] = at * 0.5
        net(x.to(GPU))


@pytest.mark.parametrize("program", [_drawn_data_of_a_recurrence, _data_written_into_zeros])
def test_a_programs_own_data_may_be_drawn_or_written_on_the_cpu(program: Callable[[], None]) -> None:
    assert warnings(program) == []


def _states_in_a_row() -> None:
    policy = nn.Linear(3, 2).to(GPU)
    for _ in range(20):
        policy(torch.stack([torch.tensor(state, device=GPU) for state in STATES])).sum()


def _states_moved_in_a_loop() -> None:
    policy = nn.Linear(3, 2).to(GPU)
    for _ in range(20):
        rows = []
        for state in STATES:
            rows.append(torch.tensor(state).to(GPU))
        policy(torch.stack(rows)).sum()


@pytest.mark.parametrize("program", [_states_in_a_row, _states_moved_in_a_loop])
def test_a_few_tensors_of_numbers_in_a_row_could_be_one(program: Callable[[], None]) -> None:
    (found,) = warnings(program)
    assert (found.rule, found.count) == ("host-to-device-copy", 100)
    assert "gather the values first" in found.help


@healthy
def test_all_states_in_one_tensor_are_no_warning() -> None:
    policy = nn.Linear(3, 2).to(GPU)
    for _ in range(20):
        policy(torch.tensor(STATES, device=GPU)).sum()


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        past = torch.tril(torch.ones(64, 64)).to(x.device)
        return past @ self.layer(x)


def test_the_mask_of_a_forward_is_warned_of_and_a_fresh_batch_and_a_line_each_hundred_steps_are_not() -> None:
    """A new user met it as one of thirteen notes, with advice for the other twelve."""

    def program() -> None:
        model = Attention().to(GPU)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for i in range(60):
            loss = model(torch.randn(64, 4).cuda()).square().mean()
            descend(optimizer, loss)
            if i % 100 == 0:
                assert loss.item() > 0

    (found,) = warnings(program)
    assert found.site is not None
    assert (found.rule, found.count, found.site.function) == ("host-to-device-copy", 60, "Attention.forward")
    assert "made on the CPU and copied in each step" in found.message
    assert [edit.after.strip() for edit in found.edits] == ["past = torch.tril(torch.ones(64, 64, device=x.device))"]


@warns(rule="host-sync", count=60, help=Text("`if i % 100 == 0`"))
def test_a_loss_that_is_printed_in_each_step_is_written_seldom_by_the_names_of_its_loop() -> None:
    model = nn.Linear(4, 2).to(GPU)
    for i in range(60):
        loss = model(torch.randn(16, 4).cuda()).square().mean()
        print(f"{i}: {loss.item():.3f}")


@warns(
    help="create it on the device: `torch.tril(torch.ones(16, 16, device=hidden.device, dtype=hidden.dtype))`",
)
def test_what_is_moved_to_a_tensor_is_made_with_that_tensors_device_and_dtype() -> None:
    net = nn.Linear(8, 1).to(GPU)
    for _ in range(20):
        hidden = net(torch.rand(16, 8, device=GPU))
        (torch.tril(torch.ones(16, 16)).to(hidden) @ hidden).mean().backward()


class Doubled(torch.autograd.Function):
    """A function whose backward pass makes a mask on the CPU."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return grad * torch.full(grad.shape, 2.0).to(grad)


@warns(help="create it on the device: `torch.full(grad.shape, 2.0, device=grad.device, dtype=grad.dtype)`")
def test_what_the_users_own_backward_makes_is_of_its_own_line() -> None:
    net = nn.Linear(8, 1).to(GPU)
    for _ in range(20):
        Doubled.apply(net(torch.rand(16, 8, device=GPU))).mean().backward()  # type: ignore[no-untyped-call]


@warns(help="create it on the device: `torch.ones(16, 1, device=where)`")
def test_an_argument_that_only_names_a_device_is_asked_for_by_its_name() -> None:
    def step(net: nn.Module, where: torch.device | str) -> None:
        mask = torch.ones(16, 1).to(where)
        (net(torch.rand(16, 8, device=where)) * mask).mean().backward()

    net = nn.Linear(8, 1).to(GPU)
    for _ in range(20):
        step(net, GPU)
