"""Edits of errors that nobody recorded, beside what the hooks saw.

Of a module's move the line is known, but not whether it ran before an edit. A view that the failing line takes itself
is where an edit puts what it is a view of: no edit more for it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import nn

from failing import error_of

pytestmark = pytest.mark.usefixtures("hooked")
explained = partial(error_of, simulate="", mode="untraced")


class Priors:
    """Odds of the classes, which no device takes along."""

    def __init__(self, count: int) -> None:
        self.odds = torch.ones(count)


class Runner:
    """A trainer that moves the model that it is given."""

    def __init__(self, net: nn.Module, priors: Priors) -> None:
        self.net, self.priors = net.to("cuda:0"), priors


def step(net: nn.Module, priors: Priors) -> torch.Tensor:
    out: torch.Tensor = net(torch.ones(2, 4, device="cuda:0"))
    return out * priors.odds


def a_trainer_moved_it_before() -> None:
    net = nn.Linear(4, 3)
    runner = Runner(net, Priors(3))
    priors = Priors(3)
    step(net, priors)
    del runner


def test_below_what_moved_a_module_an_edit_may_ask_it() -> None:
    (edit,) = explained(a_trainer_moved_it_before).edits
    assert edit.after.strip() == "priors.odds = priors.odds.to(next(net.parameters()).device)"
    text, first = inspect.getsourcelines(a_trainer_moved_it_before)
    assert edit.line > first + next(at for at, line in enumerate(text) if "Runner(" in line)


class Digits(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stages = []
        for width in (1, 2):
            self.stages.append(nn.Conv2d(width, 2, 3, padding=1))
        self.classes = nn.Linear(2 * 4 * 4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for stage in self.stages:
            x = torch.relu(stage(x))
        out: torch.Tensor = self.classes(x.flatten(1))
        return out


class Words(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.parts = [nn.Linear(4, 4)]
        self.head = nn.Linear(8, 2)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        mixed = rows
        for part in self.parts:
            mixed = torch.tanh(part(mixed))
        out: torch.Tensor = self.head(mixed.view(-1, 8))
        return out


def images_and_layers() -> None:
    model = Digits().to("cuda:0")
    images = torch.randn(2, 1, 4, 4)
    model(images)


def rows_and_parts() -> None:
    words = Words()
    words.cuda()
    for _ in range(2):
        rows = torch.rand(4, 4)
        words(rows)


@pytest.mark.parametrize("program", [images_and_layers, rows_and_parts])
def test_layers_in_a_list_and_what_goes_in_need_no_third_edit(program: Callable[[], None]) -> None:
    finding = explained(program)
    assert sum("ModuleList(" in edit.after for edit in finding.edits) == 1
    assert len(finding.edits) == 2
    assert finding.help.count(" too; ") == 1, finding.help
