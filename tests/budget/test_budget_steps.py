"""Which steps a budget records, as tables: what the program does, and what that leads to."""

from __future__ import annotations

from functools import partial
from itertools import groupby

import pytest
import torch
from torch import nn

from devtrace.budget import budget, lines
from devtrace.budget.budget import Budget
from devtrace.recording.recording import Recording

CHEAP, SLOW = 5, 25
"""Times that a recorded event takes longer than one that is left out."""


class Called(nn.Module):
    """Runs an op, and as many modules within as it has."""

    def __init__(self, *inner: nn.Module) -> None:
        super().__init__()
        self.inner = nn.ModuleList(inner)

    def forward(self) -> torch.Tensor:
        for each in self.inner:
            each()
        return torch.ones(1)


class Program:
    """Runs letters: `a` to `d` are modules, `o` a step, `s` a set module, `l` a line, `x` an op of its own."""

    def __init__(self, times: int) -> None:
        self.modules = {"a": Called(Called(), Called()), "b": Called(), "c": Called(), "d": Called()}
        self.optimizer = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1)
        self.recording = Recording(100_000, None, partial(Budget, share=0.1))
        sampler = self.recording.recorder.sampler
        assert isinstance(sampler, Budget)
        self.budget, self.times, self.now = sampler, times, 0

    def run(self, letters: str) -> str:
        """Return how many letters were recorded, then left out, and so on."""
        left_out = []
        self.recording.start()
        try:
            for letter in letters:
                self.now += 10_000 * (1 if self.budget.off else self.times)
                self.act(letter)
                left_out.append(self.budget.off)
        finally:
            self.recording.stop()
        return ", ".join(f"{'-' if off else ''}{len(list(group))}" for off, group in groupby(left_out))

    def act(self, letter: str) -> None:
        if letter == "o":
            self.optimizer.step()
        elif letter == "s":
            self.modules["b"].extra = Called()
        elif letter == "l":
            self.budget._is_known((1, 1))
        elif letter == "x":
            torch.ones(2)
        else:
            self.modules[letter]()


@pytest.fixture(autouse=True)
def on_311(monkeypatch: pytest.MonkeyPatch) -> None:
    """No line is seen."""
    monkeypatch.setattr(lines, "_monitoring", None)


def steps_of(letters: str, times: int, monkeypatch: pytest.MonkeyPatch) -> tuple[str, Program]:
    program = Program(times)
    monkeypatch.setattr(budget, "thread_time_ns", lambda: program.now)
    return program.run(letters), program


@pytest.mark.parametrize(
    ("letters", "expected"),
    [
        ("a" * 50, "6, -32, 1, -11"),
        ("ab" * 50, "12, -64, 2, -22"),
        ("oab" * 20, "18, -42"),
        ("ax" * 30, "12, -48"),  # an op between two calls is of the first one's segment
        ("abcd" * 3 + "dcba", "16"),
        ("a" * 20 + "b" * 15, "6, -14, 6, -9"),
        ("a" * 9 + "b" + "a" * 9, "6, -3, 2, -7, 1"),  # the ninth was the last one
        ("a" * 20 + "s" + "a" * 10, "6, -14, 2, -9"),
        ("a" * 20 + "l" + "a" * 10, "6, -14, 2, -9"),
        # The last of twenty is recorded, with what follows it, until that is known.
        (("a" * 20 + "b") * 12, "6, -14, 2, -18, 3, -18, 3, -18, 3, -18, 3, -18, 3, -18, 2, -37, 1, -67"),
        ("aaxa" * 30, "12, -43, 1, -64"),  # two kinds of one segment
    ],
)
def test_what_is_known_is_recorded_now_and_then(letters: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert steps_of(letters, CHEAP, monkeypatch)[0] == expected


@pytest.mark.parametrize(("times", "batch"), [(2, 41), (CHEAP, 161), (SLOW, 961)])
def test_what_takes_longer_to_record_is_recorded_less_often(
    times: int, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, _ = steps_of("a" * 5000, times, monkeypatch)
    assert found.split(", ")[-2:-1] == ["1"]
    assert found.split(", ")[-3] == f"-{batch}"


@pytest.mark.parametrize(
    ("letters", "keys"), [("a" * 60, ["note.repetitions", "note.unseen-lines"]), ("abcd", []), ("abab" * 3, [])]
)
def test_notes_name_how_the_budget_was_kept(letters: str, keys: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    _, program = steps_of(letters, CHEAP, monkeypatch)
    assert [note.partition("\t")[0] for note in program.recording.recorder.noted()] == keys
