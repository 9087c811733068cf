"""An object that nobody gave a device gets one where it is made, if its class has a parameter for it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest
import torch

import devtrace
from devtrace.diagnosis.findings import Finding


class Histogram:
    def __init__(self, bins: int, device: str = "cpu") -> None:
        self.device = torch.device(device)
        self.bins = bins

    def of(self, values: torch.Tensor) -> torch.Tensor:
        return torch.zeros(self.bins, device=self.device)


class Mixer:
    def __init__(self, width: int, *, device: torch.device | None = None, gain: float = 1.0) -> None:
        self._where = device or "cpu"
        self.width, self.gain = width, gain

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        table = torch.arange(self.width, device=self._where).float() * self.gain
        return rows @ table


def found(program: Callable[[], object]) -> Finding:
    with suppress(RuntimeError), devtrace.record("cuda:1") as recording:
        program()
    return recording.report.findings[0]


def untraced(program: Callable[[], object]) -> Finding:
    with devtrace.simulate("cuda:1"), pytest.raises(RuntimeError) as raised:
        program()
    return devtrace.explain(raised.value).findings[0]


def of_a_literal() -> torch.Tensor:
    counter = Histogram(4)
    values = torch.ones(4, device="cuda")
    return values + counter.of(values)


def of_a_variable() -> torch.Tensor:
    chosen = torch.device("cuda:0")
    mixer = Mixer(3, gain=2.0)
    return mixer(torch.rand(2, 3).to(chosen))


def of_a_tensor(values: torch.Tensor) -> torch.Tensor:
    counter = Histogram(len(values))
    return counter.of(values).add_(values)


@pytest.mark.parametrize("explained", [found, untraced])
@pytest.mark.parametrize(
    ("program", "after"),
    [
        (of_a_literal, 'counter = Histogram(4, device="cuda")'),
        (of_a_variable, "mixer = Mixer(3, gain=2.0, device=chosen)"),
        (lambda: of_a_tensor(torch.ones(2, device="cuda")), "counter = Histogram(len(values), device=values.device)"),
    ],
)
def test_the_constructor_is_given_the_device(
    program: Callable[[], object], after: str, explained: Callable[[Callable[[], object]], Finding]
) -> None:
    finding = explained(program)
    assert finding.cause == "wrong-device"
    assert [edit.after.strip() for edit in finding.edits] == [after]


def by_its_author() -> torch.Tensor:
    counter = Histogram(4, "cpu")
    values = torch.ones(4, device="cuda")
    return values + counter.of(values)


def test_a_device_that_was_given_on_purpose_stays() -> None:
    (edit,) = found(by_its_author).edits
    assert edit.after.strip() == "return values + counter.of(values).to(values.device)"
