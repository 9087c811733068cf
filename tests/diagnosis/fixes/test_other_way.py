"""Where a fix and something else would do, both are offered, the cheaper first."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

import devtrace
from devtrace.diagnosis.findings import Finding
from failing import edits_of, report_of


class Taper(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.taps: torch.Tensor | None = None
        self.mix = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.taps is None:
            self.taps = torch.hann_window(x.size(-1), device=x.device)
        mixed: torch.Tensor = self.mix(x) * self.taps
        return mixed


class Decay(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rate = nn.Parameter(torch.ones(()))
        self.seen: dict[int, torch.Tensor] = {}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n = x.size(1)
        if n not in self.seen:
            self.seen[n] = torch.arange(n, device=x.device).float()
        return x * torch.exp(-self.rate * self.seen[n])


class Trainer:
    def __init__(self, net: nn.Module) -> None:
        self.net = net

    def start(self) -> None:
        warm = torch.rand(1, 6)
        self.net(warm)
        self.net = self.net.to("cuda:0")
        self.net(torch.rand(2, 6, device="cuda:0"))


def look_at_shapes() -> None:
    net = Taper()
    assert net(torch.zeros(2, 8)).shape == (2, 8)
    net.to("cuda:0")
    net(torch.rand(2, 8, device="cuda:0"))


def warm_up() -> None:
    Trainer(nn.Sequential(Decay(), nn.Linear(6, 2))).start()


def look_twice() -> None:
    net = Taper()
    net(torch.zeros(2, 8))
    net(torch.zeros(4, 8))
    net.to("cuda:0")
    net(torch.rand(2, 8, device="cuda:0"))


def one_of_two_gpus() -> None:
    gpu = torch.device("cuda:0")
    body, head = nn.Sequential(nn.Linear(4, 8), nn.ReLU()).to(gpu), nn.Linear(8, 2).to("cuda:1")
    target = torch.rand(5, 2, device=gpu)
    features = body(torch.rand(5, 4, device=gpu))
    (head(features) - target).square().mean().backward()


def left_on_the_cpu() -> None:
    gpu = torch.device("cuda:0")
    body, head = nn.Sequential(nn.Linear(4, 8), nn.ReLU()).to(gpu), nn.Linear(8, 2).to("cpu")
    head(body(torch.rand(5, 4, device=gpu)))


def of_recording(program: Callable[[], object]) -> Finding:
    (error,) = (each for each in report_of(program, simulate="cuda:2").findings if each.severity == "error")
    return error


def of_traceback(program: Callable[[], object]) -> Finding:
    with devtrace.simulate("cuda:2"), pytest.raises(RuntimeError) as raised:
        program()
    (error,) = devtrace.explain(raised.value).findings
    return error


both = pytest.mark.parametrize("found", [of_recording, of_traceback])


@both
def test_a_cache_is_a_buffer_or_its_first_call_comes_below_the_move(found: Callable[..., Finding]) -> None:
    error = found(look_at_shapes)
    assert edits_of(error) == ['self.register_buffer("taps", None, persistent=False)']
    fix, _, other = error.help.partition("; or ")
    assert fix.startswith("register it as a buffer")
    assert other == (
        'call `net(torch.zeros(2, 8))` (line 55) only below `net.to("cuda:0")`, with what it is given on cuda:0 too'
    )


@both
def test_a_call_below_the_move_comes_before_an_edit_that_copies_in_each_step(found: Callable[..., Finding]) -> None:
    error = found(warm_up)
    assert edits_of(error) == ["return x * torch.exp(-self.rate * self.seen[n].to(self.rate.device))"]
    cheaper, _, fix = error.help.partition("; or ")
    assert cheaper.startswith('call `self.net(warm)` (line 48) only below `self.net = self.net.to("cuda:0")`')
    assert fix == "move it where it is used: `self.seen[n].to(self.rate.device)`"


@both
def test_of_several_calls_above_the_move_none_is_named(found: Callable[..., Finding]) -> None:
    assert "only below" not in found(look_twice).help


@both
def test_a_module_on_the_other_gpu_is_put_with_the_rest_or_what_goes_through_it_moves(
    found: Callable[..., Finding],
) -> None:
    error = found(one_of_two_gpus)
    assert "nn.Linear(8, 2).to(gpu)" in edits_of(error)[0]
    assert error.help.endswith(
        "; or leave `head` on cuda:1, and move what it is given and what comes of it: "
        '`head(features.to("cuda:1")).to("cuda:0")`'
    )


@both
def test_a_module_on_the_cpu_is_not_left_there(found: Callable[..., Finding]) -> None:
    assert "leave" not in found(left_on_the_cpu).help
