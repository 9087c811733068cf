"""What a number is used for after it was read: on the device again, to decide what the loop does, or to be kept."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from costs import warnings

GPU = "cuda:0"


def _gradients_by_their_norm() -> None:
    torch.manual_seed(0)
    net = nn.Linear(8, 4).to(GPU)
    for x in torch.rand(14, 16, 8, device=GPU):
        net(x).square().mean().backward()
        norm = torch.stack([weight.grad.norm() for weight in net.parameters() if weight.grad is not None]).norm().item()
        scale = 1.0 / (norm + 1e-6)
        for weight in net.parameters():
            assert weight.grad is not None
            weight.grad.mul_(scale)


def _outputs_by_their_mean() -> None:
    torch.manual_seed(0)
    net = nn.Linear(8, 4).to(GPU)
    for x in torch.rand(14, 16, 8, device=GPU):
        out = net(x)
        center = float(out.detach().mean())
        ((out - center) ** 2).mean().backward()


def _a_peak_in_a_condition() -> None:
    torch.manual_seed(0)
    waves = torch.rand(14, 16, 8, device=GPU)
    for wave in waves:
        peak = wave.max().item()
        torch.where(wave > 0.5 * peak, wave, 0)


@pytest.mark.parametrize("program", [_gradients_by_their_norm, _outputs_by_their_mean, _a_peak_in_a_condition])
def test_a_number_that_the_device_computes_with_stays_a_tensor(program: Callable[[], None]) -> None:
    (found,) = warnings(program)
    assert found.count == 14
    assert "to compute with it on the device at test_numbers_that_are_used.py line" in found.message
    assert "use the tensor itself (`.detach()`) at test_numbers_that_are_used.py line" in found.help


def _a_weight_of_a_sum() -> None:
    total = torch.zeros(8, device=GPU)
    for x in torch.rand(14, 16, 8, device=GPU):
        amount = x.mean().item()
        total.add_(x[0], alpha=amount)


def _an_average_of_pythons() -> None:
    average, seen = 0.0, []
    for x in torch.rand(14, 16, 8, device=GPU):
        value = x.square().mean().item()
        average = 0.9 * average + 0.1 * value
        seen.append(average)


@pytest.mark.parametrize("program", [_a_weight_of_a_sum, _an_average_of_pythons])
def test_a_number_that_has_to_be_one_is_not_called_needless_on_the_device(program: Callable[[], None]) -> None:
    assert all("use the tensor itself" not in each.help for each in warnings(program))


def _a_search_that_stops() -> None:
    torch.manual_seed(0)
    net, best = nn.Linear(8, 4).to(GPU), 1e9
    for x in torch.rand(14, 16, 8, device=GPU):
        loss = net(x).square().mean()
        loss.backward()
        value = loss.item()
        if value > 4 * best:
            break
        best = min(best, value)


def _patience() -> int:
    torch.manual_seed(0)
    net, last, worse = nn.Linear(8, 4).to(GPU), 1e9, 0
    for x in torch.rand(14, 16, 8, device=GPU):
        loss = net(x).square().mean()
        loss.backward()
        now = float(loss.detach())
        worse = worse + 1 if now > last else 0
        last = now
    return worse


@pytest.mark.parametrize("program", [_a_search_that_stops, _patience])
def test_a_number_that_is_compared_later_is_read_to_decide(program: Callable[[], object]) -> None:
    (found,) = warnings(program)
    assert "to decide a branch" in found.message
    assert "check every N steps" in found.help


def test_what_is_detached_is_not_detached_again() -> None:
    def program() -> None:
        net, values = nn.Linear(8, 4).to(GPU), {}
        for step, x in enumerate(torch.rand(14, 16, 8, device=GPU)):
            loss = net(x).square().mean()
            loss.backward()
            values[step] = float(loss.detach())

    (found,) = warnings(program)
    assert found.help == "keep `loss.detach()` and read it after the loop, or every N steps"
