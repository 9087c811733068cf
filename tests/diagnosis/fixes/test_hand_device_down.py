"""A function that makes a tensor and knows no device takes one from its caller, where it can."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import devtrace
from devtrace.diagnosis.edits import applied
from devtrace.diagnosis.findings import Choice
from devtrace.source.user_code import OWN_PACKAGES


def causal(length: int, diagonal: int = 0) -> torch.Tensor:
    rows = torch.arange(length)[:, None]
    return (rows + diagonal >= torch.arange(length)).float()


@functools.cache
def remembered(length: int) -> torch.Tensor:
    return torch.ones(length, length).tril()


def with_options(length: int, **options: Any) -> torch.Tensor:
    return torch.ones(length, length).tril(**options)


def of_its_own(length: int) -> torch.Tensor:
    device = length % 2
    return torch.ones(length, length).tril(device)


class Attention(nn.Module):
    def __init__(self, mask: Callable[[int], torch.Tensor] | None = None) -> None:
        super().__init__()
        self.layer, self.mask = nn.Linear(4, 4), mask

    def window(self, length: int) -> torch.Tensor:
        return torch.hann_window(length)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.layer(x)
        scores = y @ y.transpose(1, 2)
        return scores * causal(x.shape[1])


class OfAnother(Attention):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.layer(x) @ x.transpose(1, 2)
        mask = with_options(x.shape[1]) if self.mask is None else self.mask(x.shape[1])
        return y * mask


def others(module: nn.Module, monkeypatch: pytest.MonkeyPatch) -> list[Choice]:
    """Return the fixes that a round of `devtrace fix` may try."""
    monkeypatch.setenv(OWN_PACKAGES, "")
    with suppress(RuntimeError), devtrace.record("cuda:1") as recording:
        module.to("cuda:0")(torch.ones(2, 3, 4, device="cuda:0"))
    first = recording.report.findings[0]
    assert first.severity == "error"
    return [Choice(first.help, first.edits), *first.others]


def handed(choices: list[Choice]) -> list[Choice]:
    return [each for each in choices if "where its caller has the rest" in each.help]


def test_the_first_line_its_factories_and_the_call_are_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    (choice,) = handed(others(Attention(), monkeypatch))
    text = applied(Path(__file__).read_text(encoding="utf-8"), choice.edits)
    assert "def causal(length: int, diagonal: int = 0, device=None) -> torch.Tensor:" in text
    assert "    rows = torch.arange(length, device=device)[:, None]" in text
    assert "diagonal >= torch.arange(length, device=device)).float()" in text
    assert "scores * causal(x.shape[1], device=x.device)" in text
    assert "torch.ones(length, length).tril()" in text


@pytest.mark.parametrize("mask", [remembered, None, of_its_own, lambda length: torch.ones(length, length)])
def test_a_function_that_may_not_take_one_more_argument_is_left_alone(
    mask: Callable[[int], torch.Tensor] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not handed(others(OfAnother(mask), monkeypatch))


def test_it_is_no_first_choice_as_it_changes_more_than_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    choices = others(Attention(), monkeypatch)
    assert len(choices) > 1
    assert choices[0] not in handed(choices)
