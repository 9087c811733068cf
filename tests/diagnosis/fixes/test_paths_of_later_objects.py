"""A path is written only where what it leads through is there: another file may make that later."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from devtrace.diagnosis.findings import Finding
from failing import both, edits_of

FILES = {
    "annealing": """
from windows import Window


class Annealer:
    def __init__(self, rounds):
        self.rounds = rounds
        self.window = None

    def open(self, window):
        self.window = window

    def run(self, field):
        if self.window is None:
            self._start(field)
        return self._go_on(field)

    def _start(self, field):
        self.window = Window(len(field))

    def _go_on(self, field):
        for _ in range(self.rounds):
            field = self.window.settle(field)
        return field
""",
    "windows": """
import torch


class Window:
    def __init__(self, n):
        self._clear(n)

    def _clear(self, n):
        self.best = torch.full((n,), 9.0)

    def settle(self, field):
        return torch.minimum(field, self.best)
""",
    "scaling": """
import torch


class Scaler:
    def __init__(self, rows):
        self.rows = rows
        self.mean = None

    def fit(self):
        self.mean = average(self.rows)
        return self

    def keep(self, mean):
        self.mean = mean

    def apply(self, x):
        return x - self.mean


def average(rows):
    return torch.stack(rows).mean(0)
""",
}


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Files of the user's beside the program."""
    for name, text in FILES.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in FILES:
        sys.modules.pop(name, None)


def a_window_that_the_run_opens() -> None:
    from annealing import Annealer  # type: ignore[import-not-found]

    field = torch.ones(4, device="cuda:0")
    annealer = Annealer(3)
    annealer.run(field)


def a_mean_that_the_fit_keeps() -> None:
    from scaling import Scaler  # type: ignore[import-not-found]

    x, rows = torch.ones(2, 3, device="cuda:0"), [torch.ones(3), torch.zeros(3)]
    scaler = Scaler(rows)
    scaler.fit().apply(x)


def a_mean_that_a_call_attaches() -> None:
    from scaling import Scaler

    mean, x = torch.ones(3), torch.ones(2, 3, device="cuda:0")
    scaler = Scaler([])
    scaler.keep(mean)
    scaler.apply(x)


def a_window_that_a_method_of_another_attaches() -> None:
    from annealing import Annealer
    from windows import Window  # type: ignore[import-not-found]

    field = torch.ones(4, device="cuda:0")
    window, annealer = Window(4), Annealer(3)
    annealer.open(window)
    annealer.run(field)


@both
@pytest.mark.parametrize(
    ("program", "path"),
    [
        (a_window_that_the_run_opens, "annealer.window"),
        (a_mean_that_the_fit_keeps, "scaler.mean"),
        (a_mean_that_a_call_attaches, "scaler.mean"),
        (a_window_that_a_method_of_another_attaches, "annealer.window"),
    ],
)
def test_no_edit_is_above_what_makes_its_path(
    found: Callable[[Callable[[], None]], Finding], program: Callable[[], None], path: str
) -> None:
    lines = edits_of(found(program))
    assert lines
    assert not [line for line in lines if path in line], lines
