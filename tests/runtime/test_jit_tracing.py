"""torch.jit.trace makes the same graph under a recording and in a simulation, and what it made runs there."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import devtrace

Setting = Callable[[], Any]
SETTINGS: list[tuple[Setting, str]] = [
    (devtrace.record, "cpu"),
    (lambda: devtrace.simulate("cuda:1"), "cuda"),
    (lambda: devtrace.record(simulate="cuda:1"), "cuda"),
]


class Lists(nn.Module):
    """Sizes that the graph keeps as numbers, a convolution of a view, a part that is written to."""

    def __init__(self) -> None:
        super().__init__()
        self.recurrent = nn.LSTM(8, 8, batch_first=True)
        self.convolution = nn.Conv1d(8, 8, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden, _ = self.recurrent(x)
        hidden[0] = hidden[1]
        out: torch.Tensor = self.convolution(hidden.transpose(1, 2)).view(x.size(0), -1)
        return out + torch.ones(1, device=x.device)


MODELS: list[Callable[[], nn.Module]] = [
    Lists,
    lambda: nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2)),
    lambda: nn.GRU(8, 4),
]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("setting", "device"), SETTINGS)
def test_a_module_is_traced_as_without_us(
    setting: Callable[[], Any], device: str, model: Callable[[], nn.Module]
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        plain = torch.jit.trace(model(), torch.ones(2, 4, 8))
        with setting():
            traced = torch.jit.trace(model().to(device), torch.ones(2, 4, 8, device=device))
    assert operators(traced) == operators(plain)


@pytest.mark.parametrize(("setting", "device"), SETTINGS)
def test_a_traced_module_runs_again_and_again(setting: Setting, device: str) -> None:
    with warnings.catch_warnings(), setting():
        warnings.simplefilter("ignore", DeprecationWarning)
        model, x = Lists().to(device), torch.rand(2, 4, 8, device=device)
        traced = torch.jit.trace(model, x, check_trace=False)
        assert all(torch.equal(traced(x), model(x)) for _ in range(3))


def operators(traced: Any) -> list[str]:
    """Return the operators of a graph; under any mode a number that is put into a tensor is lifted."""
    return [each for each in re.findall(r"aten::\w+", str(traced.inlined_graph)) if each != "aten::lift_fresh"]
