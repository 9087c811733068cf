"""The phases of a recording with a budget, as tables: what the program does, and which phases that leads to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby

import pytest
import torch
from torch import nn

from devtrace.recording.budget.budget import Budget
from devtrace.recording.budget.phases import Phase
from devtrace.recording.recording import Recording

CHEAP = {"Learning": 50, "Sampling": 50, "Joining": 50, "Watching": 10, "Counting": 10}
"""Nanoseconds of an event in each phase: comparing it costs nothing."""
DEAR = {**CHEAP, "Watching": 20}
SLOW = {**CHEAP, "Learning": 250, "Sampling": 250}


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
    """Runs letters: `a` to `d` are modules, `o` a step, `s` a set module, `l` a line, `i` one within a call of `d`."""

    def __init__(self, costs: Mapping[str, float]) -> None:
        self.modules = {"a": Called(Called(), Called()), "b": Called(), "c": Called(), "d": Called()}
        self.optimizer = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1)
        self.recording = Recording(100_000, None, 0.10)
        self.costs, self.now = costs, 0.0
        budget = self.recording.recorder.budget
        assert isinstance(budget, Budget)
        self.budget = budget
        budget.clock = lambda: int(self.now * 1000)
        budget.lines._tool = -1  # as on Python 3.11: no line is learned

    def name(self) -> str:
        phase: Phase = self.budget.phase
        return type(phase).__name__

    def run(self, letters: str) -> Iterator[str]:
        """Yield the phase after each letter."""
        self.recording.start()
        try:
            for letter in letters:
                self.now += self.costs[self.name()]
                self.act(letter)
                yield self.name()
        finally:
            self.recording.stop()

    def act(self, letter: str) -> None:
        if letter == "o":
            self.optimizer.step()
        elif letter == "s":
            self.modules["b"].extra = Called()
        elif letter == "l":
            self.budget._at_an_unknown_line("a line")
        else:
            self.modules[letter]()


def phases_of(letters: str, costs: Mapping[str, float]) -> tuple[str, Program]:
    program = Program(costs)
    found = [f"{phase} {len(list(group))}" for phase, group in groupby(program.run(letters))]
    return ", ".join(found), program


@pytest.mark.parametrize(
    ("letters", "costs", "expected"),
    [
        ("a" * 50, CHEAP, "Learning 6, Watching 32, Sampling 1, Watching 11"),
        ("ab" * 50, CHEAP, "Learning 12, Watching 64, Sampling 2, Watching 22"),
        ("oab" * 20, CHEAP, "Learning 19, Watching 41"),  # a repetition begins with a module's call
        ("abcd" * 3 + "dcba", CHEAP, "Learning 16"),
        ("a" * 20 + "b" * 5, CHEAP, "Learning 6, Watching 14, Learning 5"),
        ("a" * 20 + "b" * 15, CHEAP, "Learning 6, Watching 14, Learning 6, Watching 9"),
        (
            "a" * 9 + "b" + "a" * 9,
            CHEAP,
            "Learning 6, Watching 3, Learning 3, Watching 6, Sampling 1",
        ),  # two: it was a loop before
        ("a" * 20 + "s" + "a" * 5, CHEAP, "Learning 6, Watching 14, Joining 1, Learning 2, Watching 3"),
        ("a" * 20 + "l" + "a" * 5, CHEAP, "Learning 6, Watching 14, Joining 1, Sampling 1, Watching 4"),
    ],
)
def test_events_lead_from_phase_to_phase(letters: str, costs: Mapping[str, float], expected: str) -> None:
    assert phases_of(letters, costs)[0] == expected


def left_out(letters: str, costs: Mapping[str, float]) -> tuple[int, int, int]:
    """Return how many repetitions were recorded, watched or only counted."""
    _, program = phases_of(letters, costs)
    loops = list(program.budget.loops.values())
    counted = sum(loop.counted.repetitions for loop in loops)
    return sum(loop.recorded for loop in loops), sum(loop.left_out for loop in loops) - counted, counted


@pytest.mark.parametrize(
    ("letters", "costs", "expected"),
    [
        ("a" * 1500, CHEAP, (16, 1356, 128)),  # counted twice for 64, to learn what watching costs
        ("a" * 1500, SLOW, (11, 1361, 128)),  # what takes longer to record is recorded less often
        ("a" * 1500, DEAR, (18, 325, 1157)),  # what takes long to watch is mostly counted
        ("o" * 800, DEAR, (19, 781, 0)),  # steps alone cannot be counted: nothing tells where they come to
    ],
)
def test_what_is_left_out_keeps_the_budget(
    letters: str, costs: Mapping[str, float], expected: tuple[int, int, int]
) -> None:
    assert left_out(letters, costs) == expected


COUNTED = "a" * 654
"""Comes, at DEAR costs, to the middle of a time in which repetitions are only counted."""


@pytest.mark.parametrize(
    ("then", "expected"),
    [
        ("b" * 9, "Counting 149"),  # nobody sees that another module is called
        ("s" + "a" * 4, "Counting 140, Joining 1, Learning 2, Watching 2"),
        ("l" + "a" * 3, "Counting 140, Joining 1, Sampling 1, Watching 2"),
    ],
)
def test_what_no_repetition_has_ends_the_counting(then: str, expected: str) -> None:
    assert phases_of(COUNTED + then, DEAR)[0].endswith(f"Sampling 1, Watching 4, {expected}")


def test_a_loop_that_ends_while_it_is_counted_is_found_to_have_ended() -> None:
    phases, program = phases_of(COUNTED + "b" * 80, DEAR)
    assert phases.endswith("Counting 191, Learning 6, Watching 23")
    first = next(iter(program.budget.loops.values()))
    assert first.recorded + first.left_out == len(COUNTED) + 17  # the first 51 calls were counted as parts of an `a`


@pytest.mark.parametrize(
    ("letters", "costs", "keys"),
    [
        ("a" * 1500, CHEAP, ["note.repetitions", "note.unseen-lines"]),
        ("a" * 1500, DEAR, ["note.repetitions", "note.unseen-lines", "note.only-counted"]),
        ("abcd", CHEAP, []),
    ],
)
def test_notes_name_how_the_budget_was_kept(letters: str, costs: Mapping[str, float], keys: list[str]) -> None:
    _, program = phases_of(letters, costs)
    assert [note.partition("\t")[0] for note in program.recording.recorder.noted()] == keys


def test_a_budget_that_was_not_kept_is_a_note_with_what_it_took() -> None:
    _, program = phases_of("a" * 60, {phase: 1000 * cost for phase, cost in SLOW.items()})
    assert 'note.over-budget\t{"percent": 280, "budget": 10}' in program.recording.recorder.noted()
