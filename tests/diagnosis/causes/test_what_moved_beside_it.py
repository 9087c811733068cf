"""What is said to have missed a tensor is a line that moved something, and a device is asked of what is public."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import devtrace
from devtrace.diagnosis.findings import Finding
from failing import culprit_of


class Settings:
    def __init__(self) -> None:
        self._chosen, self.rate = torch.device("cuda:0"), 0.1

    @property
    def chosen(self) -> torch.device:
        assert self.rate
        return self._chosen


class Loop:
    def __init__(self, net: nn.Module, settings: Settings) -> None:
        self.net = net.to(settings.chosen)
        self.total = torch.tensor(0.0, device=settings.chosen)
        self.shift = torch.arange(3.0)

    def __call__(self, x: Tensor) -> Any:
        return self.net(x) + self.shift


class Beside(Loop):
    def __init__(self, net: nn.Module, settings: Settings) -> None:
        super().__init__(net, settings)
        self.total = torch.tensor([1.0, 2.0, 3.0]).to(settings.chosen)


def found(kind: Callable[[nn.Module, Settings], Loop]) -> Finding:
    with suppress(RuntimeError), devtrace.record("cuda:1") as recording:
        settings = Settings()
        loop = kind(nn.Linear(4, 3), settings)
        loop(torch.ones(2, 4, device="cuda:0"))
    return recording.report.findings[0]


@pytest.mark.parametrize(("kind", "moved"), [(Loop, ""), (Beside, ".to(settings.chosen)")])
def test_a_factory_with_a_device_is_no_move_that_missed_a_neighbour(
    kind: Callable[[nn.Module, Settings], Loop], moved: str
) -> None:
    error = found(kind)
    assert culprit_of(error).name == "loop.shift"
    site = culprit_of(error).moved
    assert (moved in site.text) if site is not None else not moved


def test_what_an_object_keeps_private_is_not_written_outside_of_it() -> None:
    error = found(Loop)
    assert error.edits
    assert not any("_chosen" in edit.after for edit in error.edits)
