"""What each step computes or copies again though nothing needs it: constants of the CPU, weights, single numbers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from costs import GPU, descend, warnings, warns
from failing import culprit_of

STEPS = 12


def train(net: nn.Module, batches: torch.Tensor, after: Callable[[torch.Tensor], None] = lambda _: None) -> None:
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in batches:
        out = net(x.to(GPU))
        descend(optimizer, out.square().mean())
        after(out)


# Computed on the CPU from what no step changes.


class Blur(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.line = torch.linspace(-1, 1, 8)
        self.mix = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kernel = torch.exp(-self.line.square()).outer(self.line.cos())
        mixed: torch.Tensor = self.mix(x @ kernel.to(x))
        return mixed


def test_what_each_step_computes_of_constants_of_the_cpu_is_a_warning() -> None:
    (found,) = warnings(lambda: train(Blur().to(GPU), torch.rand(STEPS, 20, 8)))
    assert (found.rule, found.count) == ("host-to-device-copy", STEPS)
    assert "is computed on the CPU and copied in each step, although its inputs never change" in found.message
    assert found.help == "move what it is computed from to the device once, and compute there"
    assert culprit_of(found).name.endswith(".line")


def _batches_of_a_scaled_table() -> None:
    data = torch.randint(0, 255, (STEPS * 4, 8))
    train(nn.Linear(8, 8).to(GPU), torch.stack([data[at : at + 4] / 255 for at in range(0, STEPS * 4, 4)]))


def _slices_that_are_scaled_in_the_loop() -> None:
    net, data = nn.Linear(8, 2).to(GPU), torch.randint(0, 255, (STEPS * 4, 8))
    for at in range(0, STEPS * 4, 4):
        net((data[at : at + 4].float() / 255).to(GPU)).sum()


def _masked_inputs_drawn_anew() -> None:
    net, table = nn.Linear(8, 2).to(GPU), torch.rand(16, 8)
    for _ in range(STEPS):
        net(nn.functional.dropout(table, 0.5).to(GPU)).sum()


def _state_that_each_step_changes() -> None:
    net, state = nn.Linear(8, 2).to(GPU), torch.ones(8)
    for _ in range(STEPS):
        net((state * 2).to(GPU)).sum()
        state.mul_(0.9)


def _epochs_over_a_set_in_its_order() -> None:
    net, data = nn.Linear(8, 2).to(GPU), torch.utils.data.TensorDataset(torch.rand(24, 8))
    for _ in range(4):
        for (x,) in torch.utils.data.DataLoader(data, batch_size=4):
            net(x.to(GPU)).sum()


HEALTHY = [
    _epochs_over_a_set_in_its_order,
    _batches_of_a_scaled_table,
    _slices_that_are_scaled_in_the_loop,
    _masked_inputs_drawn_anew,
    _state_that_each_step_changes,
]


@pytest.mark.parametrize("program", HEALTHY)
def test_what_is_other_data_in_each_step_is_none(program: Callable[[], None]) -> None:
    assert warnings(program) == []


# Weights and single numbers that come to the CPU in each step.


def _snapshots() -> None:
    net = nn.Linear(8, 8).to(GPU)
    kept = []
    train(net, torch.rand(STEPS, 4, 8), lambda _: kept.append([w.data.to("cpu") for w in net.parameters()]))


def test_weights_that_come_to_the_cpu_in_each_step_are_a_warning() -> None:
    found = warnings(_snapshots)[0]
    assert (found.rule, found.count) == ("device-to-host-copy", 2 * STEPS)
    assert "are weights, copied to the CPU in each step" in found.message
    assert found.help == "compute with them on the device, and copy the result once, after the loop or every N steps"


@warns(rule="device-to-host-copy", count=STEPS)
def test_a_number_that_a_training_copies_in_each_step_is_a_warning() -> None:
    wrong = torch.zeros(())

    def count(out: torch.Tensor) -> None:
        wrong.add_((out > 0).sum().to("cpu"))

    train(nn.Linear(8, 8).to(GPU), torch.rand(STEPS, 4, 8), count)
