"""Edits of errors that nobody recorded: of a module's move the line is known, but not whether it ran before an edit."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest
import torch
from torch import nn

import devtrace
from devtrace.diagnosis.findings import Finding

pytestmark = pytest.mark.usefixtures("hooked")


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


def prepared(net: nn.Module) -> nn.Module:
    return _put(net)


def _put(module: nn.Module) -> nn.Module:
    return module.to(torch.device("cuda", 0))


def a_helper_moved_it_before() -> None:
    net = nn.Linear(4, 3)
    prepared(net)
    priors = Priors(3)
    step(net, priors)


def a_trainer_moved_it_before() -> None:
    net = nn.Linear(4, 3)
    runner = Runner(net, Priors(3))
    priors = Priors(3)
    step(net, priors)
    del runner


def explained(program: Callable[[], None]) -> Finding:
    with pytest.raises(RuntimeError) as caught:
        program()
    (finding,) = devtrace.explain(caught.value).findings
    return finding


def moving_line(program: Callable[[], None]) -> int:
    """Return the line of a program that hands the module to what moves it."""
    text, first = inspect.getsourcelines(program)
    return first + next(at for at, line in enumerate(text) if "Runner(" in line or "prepared(" in line)


@pytest.mark.parametrize("program", [a_helper_moved_it_before, a_trainer_moved_it_before])
def test_below_what_moved_a_module_an_edit_may_ask_it(program: Callable[[], None]) -> None:
    (edit,) = explained(program).edits
    assert edit.after.strip() == "priors.odds = priors.odds.to(next(net.parameters()).device)"
    assert edit.line > moving_line(program)
