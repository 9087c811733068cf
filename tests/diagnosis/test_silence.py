"""What the program asks to be silent about is counted and not shown."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

import devtrace
from devtrace.api.results import Report

GPU = "cuda:0"
NOTE = "1 finding is not shown, as `# devtrace: ignore` asks"


def report_of(each_step: Callable[[torch.Tensor], object]) -> Report:
    with devtrace.record(simulate="cuda:1") as recording:
        net = nn.Linear(8, 4).to(GPU)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(20):
            optimizer.zero_grad()
            loss = net(torch.rand(16, 8, device=GPU)).square().mean()
            loss.backward()
            optimizer.step()
            each_step(loss)
    return recording.report


def named(loss: torch.Tensor) -> float:
    return loss.item() * 2  # devtrace: ignore[host-sync]


def among_others(loss: torch.Tensor) -> float:
    return loss.item() * 2  # devtrace: ignore[cpu-compute, host-sync] read on purpose


def every_rule(loss: torch.Tensor) -> float:
    return loss.item() * 2  # devtrace: ignore


def on_the_statement(loss: torch.Tensor) -> list[float]:
    return [
        loss.item(),
        2.0,
    ]  # devtrace: ignore[host-sync]


def another_rule(loss: torch.Tensor) -> float:
    return loss.item() * 2  # devtrace: ignore[cpu-compute]


@pytest.mark.parametrize("read", [named, among_others, every_rule, on_the_statement])
def test_a_comment_silences_the_finding_of_its_statement(read: Callable[[torch.Tensor], object]) -> None:
    report = report_of(read)
    assert [each.rule for each in report.findings if each.severity == "warning"] == []
    assert report.notes == (NOTE,)


def test_a_comment_for_another_rule_silences_nothing() -> None:
    report = report_of(another_rule)
    assert [each.rule for each in report.findings if each.severity == "warning"] == ["host-sync"]
    assert report.notes == ()


def test_an_error_is_never_silent() -> None:
    with pytest.raises(RuntimeError), devtrace.record(simulate="cuda:1") as recording:
        torch.ones(2, device=GPU) + torch.ones(2)  # devtrace: ignore
    assert [each.severity for each in recording.report.findings] == ["error"]
