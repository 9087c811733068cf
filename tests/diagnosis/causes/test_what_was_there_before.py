"""What was there before a line moved another tensor, or came after it, was not left behind by that line.

Both where the program was error_of and where only the error is explained.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import ClassVar

import pytest
import torch
from torch import Tensor, nn

from devtrace.diagnosis.findings import Finding
from failing import birth_of, both, culprit_of, edits_of, explained


def smoothed(x: Tensor, kernel: Tensor = torch.ones(3) / 3) -> Tensor:  # noqa: B008
    return x * kernel


class Scale:
    def __call__(self, x: Tensor, *, by: Tensor = torch.tensor([2.0, 1.0, 0.5])) -> Tensor:  # noqa: B008
        return x / by

    @staticmethod
    def less(x: Tensor, floor: Tensor = torch.zeros(3)) -> Tensor:  # noqa: B008
        return x - floor


def a_default_of_a_function() -> None:
    x = torch.ones(2, 3)
    x = x.to("cuda:0")
    smoothed(x)


def a_default_of_a_method() -> None:
    x = torch.ones(2, 3)
    x = x.to("cuda:0")
    Scale()(x)


def a_default_of_a_static_method() -> None:
    x = torch.ones(2, 3)
    x = x.to("cuda:0")
    Scale.less(x)


@both
@pytest.mark.parametrize(
    ("program", "name", "born"),
    [
        (a_default_of_a_function, "kernel", "torch.ones(3) / 3"),
        (a_default_of_a_method, "by", "torch.tensor([2.0, 1.0, 0.5])"),
        (a_default_of_a_static_method, "floor", "torch.zeros(3)"),
    ],
)
def test_a_default_did_not_come_with_the_arguments(
    found: Callable[[Callable[[], None]], Finding], program: Callable[[], None], name: str, born: str
) -> None:
    error = found(program)
    assert culprit_of(error).moved is None, error.message
    assert culprit_of(error).name == name
    if found is explained:  # while nobody error_of, the file was read
        assert birth_of(error).text == born


WINDOWS = {"hann": partial(torch.hann_window, periodic=False)}


class Frames(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.window = WINDOWS["hann"]

    def forward(self, wave: Tensor) -> Tensor:
        window = self.window(4)
        return wave * window


def a_window_of_a_table_of_functions() -> None:
    frames = Frames().to("cuda:0")
    wave = torch.ones(2, 4).to("cuda:0")
    frames(wave)


def made_for(sizes: dict[int, Tensor], n: int) -> Tensor:
    return sizes[n] if n in sizes else sizes.setdefault(n, torch.ones(n))


def weighted(x: Tensor, sizes: dict[int, Tensor]) -> Tensor:
    weight = made_for(sizes, x.shape[-1])
    return x * weight


def a_weight_that_a_function_keeps() -> None:
    x = torch.ones(2, 4).to("cuda:0")
    weighted(x, {})


@both
@pytest.mark.parametrize("program", [a_window_of_a_table_of_functions, a_weight_that_a_function_keeps])
def test_what_a_function_made_was_not_left_behind_by_a_line_before_its_call(
    found: Callable[[Callable[[], None]], Finding], program: Callable[[], None]
) -> None:
    error = found(program)
    assert culprit_of(error).moved is None, error.message


class Coordinates(nn.Module):
    grids: ClassVar[dict[tuple[int, int], Tensor]] = {}

    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Conv2d(3, 1, 1)

    def grid(self, height: int, width: int, device: torch.device) -> Tensor:
        if (height, width) not in self.grids:
            ys, xs = torch.arange(height, device=device), torch.arange(width, device=device)
            self.grids[height, width] = torch.stack(torch.meshgrid(ys, xs, indexing="ij")).float()
        return self.grids[height, width]

    def forward(self, x: Tensor) -> Tensor:
        grid = self.grid(x.shape[-2], x.shape[-1], x.device)
        return self.mix(torch.cat([x, grid[None]], 1))  # type: ignore[no-any-return]


def a_grid_from_before_the_move() -> None:
    layer = Coordinates()
    layer(torch.zeros(1, 1, 2, 3))
    layer.to("cuda:0")
    x = torch.zeros(1, 1, 2, 3)
    layer(x.to("cuda:0"))


KNOWN: dict[int, Tensor] = {}


def ramp(n: int) -> Tensor:
    if n not in KNOWN:
        KNOWN[n] = torch.linspace(0, 1, n)
    return KNOWN[n]


def encoded(x: Tensor) -> Tensor:
    values = ramp(x.shape[1])
    return x * values


def a_ramp_of_an_earlier_call() -> None:
    x = torch.ones(2, 4)
    encoded(x)
    x = x.to("cuda:0")
    encoded(x)


@pytest.fixture
def nothing_kept() -> None:
    Coordinates.grids.clear()
    KNOWN.clear()


@pytest.mark.usefixtures("nothing_kept")
@both
def test_what_a_class_keeps_under_two_numbers_has_that_name(
    found: Callable[[Callable[[], None]], Finding],
) -> None:
    error = found(a_grid_from_before_the_move)
    assert culprit_of(error).name == "layer.grids[(2, 3)]"
    assert error.cause in ("stale-copy", "not-registered")


@pytest.mark.usefixtures("nothing_kept")
@both
@pytest.mark.parametrize(
    ("program", "edit"),
    [
        (a_grid_from_before_the_move, "(x.device)"),
        (a_ramp_of_an_earlier_call, "values = ramp(x.shape[1]).to(x.device)"),
    ],
)
def test_an_earlier_call_on_the_cpu_needs_no_edit_of_its_own(
    found: Callable[[Callable[[], None]], Finding], program: Callable[[], None], edit: str
) -> None:
    (line,) = edits_of(found(program))
    assert edit in line
