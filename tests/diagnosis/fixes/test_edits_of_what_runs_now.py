"""An edit is of what runs: each use in a lambda, a model that the failing line moves, and what vmap or grad wraps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import grad, vmap

from devtrace.diagnosis.findings import Finding
from failing import both, edits_of, error_of, explained

LEVELS = torch.tensor([0.1, 0.5, 0.9])
LOSSES = {"levels": lambda p, y: torch.maximum(LEVELS * (y - p), (LEVELS - 1) * (y - p)).mean()}


def a_lambda_of_a_table() -> None:
    LOSSES["levels"](torch.ones(4, 3, device="cuda:0"), torch.zeros(4, 3, device="cuda:0"))


class Shift(nn.Module):
    def __init__(self, shift: Tensor) -> None:
        super().__init__()
        self.run: Callable[[Tensor], Tensor] = lambda x: x - shift + shift.abs()


def a_lambda_of_an_object() -> None:
    Shift(LEVELS).to("cuda:0").run(torch.ones(2, 3, device="cuda:0"))


@both
@pytest.mark.parametrize(
    ("program", "name", "uses"), [(a_lambda_of_a_table, "LEVELS", 2), (a_lambda_of_an_object, "shift", 2)]
)
def test_each_use_in_a_lambda_is_moved(
    found: Callable[[Callable[[], None]], Finding], program: Callable[[], None], name: str, uses: int
) -> None:
    (line,) = edits_of(found(program))
    assert line.count(f"{name}.to(") == uses, line


class Meter:
    def __init__(self, n: int) -> None:
        self.total = torch.zeros(n)

    def add(self, out: Tensor) -> None:
        self.total += out.detach().sum(0)


class Runner:
    def __init__(self, net: nn.Module, meters: list[Any]) -> None:
        self.net = net.to("cuda:0")
        self.meters = meters

    def fit(self, rounds: int) -> None:
        for _ in range(rounds):
            out = self.net(torch.ones(4, 3, device="cuda:0"))
            for meter in self.meters:
                meter.add(out)


def run(model: nn.Module, meter: Meter) -> None:
    model = model.to("cuda:0")
    meter.add(model(torch.ones(4, 3, device="cuda:0")))


def what_a_runner_moves() -> None:
    net = nn.Linear(3, 2)
    meter = Meter(2)
    Runner(net, [meter]).fit(2)


def what_a_function_moves() -> None:
    net = nn.Linear(3, 2)
    meter = Meter(2)
    run(net, meter)


@pytest.mark.parametrize("program", [what_a_runner_moves, what_a_function_moves])
def test_no_edit_asks_a_model_for_its_device_above_the_line_that_moves_it(program: Callable[[], None]) -> None:
    (line,) = edits_of(error_of(program))
    assert "total.to(" in line
    assert "parameters()" not in line


def loss_of(x: Tensor, y: Tensor) -> Tensor:
    weights = torch.ones(3)
    x = torch.cat([x, weights])
    return (x.sum() - y) ** 2


def shifted(x: Tensor) -> Tensor:
    shift = torch.arange(3)
    return x + shift


def of_gradients() -> None:
    vmap(grad(loss_of))(torch.ones(2, 3).to("cuda:0"), torch.zeros(2).to("cuda:0"))


def of_two_axes() -> None:
    vmap(vmap(shifted))(torch.ones(2, 2, 3).to("cuda:0"))


@pytest.mark.parametrize("found", [error_of, explained])
@pytest.mark.parametrize(
    ("program", "edit"),
    [
        (of_gradients, "weights = torch.ones(3, device=x.device)"),
        (of_two_axes, "shift = torch.arange(3, device=x.device)"),
    ],
)
def test_a_factory_is_given_the_device_of_an_argument(
    found: Callable[[Callable[[], None]], Finding], program: Callable[[], None], edit: str
) -> None:
    assert edits_of(found(program)) == [edit]
