"""What a program pays for nothing, recorded on a simulated device.

@warns(rule="host-sync", count=20)
def test_a_loss_that_each_step_reads() -> None:
    ...                             # the program itself: the test is that it hears this one warning
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec

import torch
from torch import nn

import devtrace
from devtrace.diagnosis.findings import Finding
from failing import assert_tells

GPU = "cuda:0"
P = ParamSpec("P")


def descend(optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> None:
    """Take a step of an optimizer."""
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def train(each: Callable[[torch.Tensor], torch.Tensor], steps: int = 12) -> None:
    """Train a layer on the simulated device by the loss that `each` makes of what the layer gave."""
    torch.manual_seed(0)
    net = nn.Linear(8, 8).to(GPU)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for batch in torch.rand(steps, 16, 8, device=GPU):
        loss = each(net(batch))
        descend(optimizer, loss)


def findings(program: Callable[[], object]) -> list[Finding]:
    torch.manual_seed(0)
    with devtrace.record(simulate="cuda:2") as recording:
        program()
    assert not recording.report.notes
    return list(recording.report.findings)


def warnings(program: Callable[[], object]) -> list[Finding]:
    """Return a recorded program's findings that are more than notes."""
    return [finding for finding in findings(program) if finding.severity != "note"]


def healthy(program: Callable[P, object]) -> Callable[P, None]:
    """Return the test that a program hears no warning."""

    @functools.wraps(program)
    def test(*args: P.args, **kwargs: P.kwargs) -> None:
        assert warnings(lambda: program(*args, **kwargs)) == []

    return test


def warns(**expected: Any) -> Callable[[Callable[P, object]], Callable[P, None]]:
    """Make of a program the test that it hears one warning, which tells what is expected."""

    def test_of(program: Callable[P, object]) -> Callable[P, None]:
        @functools.wraps(program)
        def test(*args: P.args, **kwargs: P.kwargs) -> None:
            (warning,) = warnings(lambda: program(*args, **kwargs))
            assert_tells(warning, **expected)

        return test

    return test_of
