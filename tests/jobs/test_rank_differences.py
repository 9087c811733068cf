"""Ranks compared by line: who had other devices, copies, waits or ops than the rest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import devtrace
from devtrace.jobs.merge import merge


def notes_of(program: Callable[[int], object], ranks: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what the merged report of a job says first, its lines without their numbers."""
    traces = []
    for rank in range(ranks):
        monkeypatch.setenv("RANK", str(rank))
        monkeypatch.setenv("WORLD_SIZE", str(ranks))
        with devtrace.record(8) as recording:
            program(rank)
        traces.append(recording.report.trace)
    report = devtrace.diagnose(merge(traces))
    first = str(report).split("\n\n")[0].replace("\n", " ") if report.trace.notes else ""
    assert all(note.split()[-1] in first for note in report.trace.notes)
    return [note.removeprefix(f"{Path(__file__).name} line ").partition(": ")[2] for note in report.trace.notes]


def alike(rank: int) -> None:
    x = torch.ones(4, device=f"cuda:{rank}")
    for _ in range(3):
        x = x.mul(2)


def one_reads_its_loss(rank: int) -> None:
    x = torch.ones(4, device=f"cuda:{rank}")
    for _ in range(3):
        x = x.mul(2)
        if rank == 2:
            print(x.sum().item())


def some_copy_twice(rank: int) -> None:
    x = torch.ones(4, device=f"cuda:{rank}")
    for _ in range(2 if rank in (1, 3) else 1):
        x = x.cpu().to(f"cuda:{rank}")


def one_works_elsewhere(rank: int) -> None:
    x = torch.ones(4, device=f"cuda:{rank}")
    x.mul(2)
    x.mul(2)
    y = torch.ones(4, device="cuda:0" if rank == 3 else f"cuda:{rank}")
    y.mul(2)


def each_has_its_own_number_of_steps(rank: int) -> None:
    x = torch.ones(4, device=f"cuda:{rank}")
    for _ in range(rank + 1):
        x = x.mul(2)


def the_second_of_two_reads(rank: int) -> None:
    x = torch.ones(4, device=f"cuda:{rank}")
    if rank == 1:
        x.sum().item()


@pytest.mark.parametrize(
    ("program", "ranks", "notes"),
    [
        (alike, 4, []),
        (each_has_its_own_number_of_steps, 4, []),
        (one_reads_its_loss, 4, ["3 waits for a device on rank 2, 0 waits for a device on the others"]),
        (some_copy_twice, 5, ["4 copies on ranks 1 and 3, 2 copies on the others"]),
        (one_works_elsewhere, 4, ["1 op on cuda:0 on rank 3, only the rank's own device on the others"] * 2),
        (the_second_of_two_reads, 2, ["1 wait for a device on rank 1, 0 waits for a device on the others"]),
    ],
)
def test_ranks_that_do_otherwise_than_the_rest_are_named(
    program: Callable[[int], object], ranks: int, notes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert notes_of(program, ranks, monkeypatch) == notes


def test_of_many_lines_five_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    def program(rank: int) -> None:
        x = torch.ones(4, device=f"cuda:{rank}")
        if rank == 1:
            x = x.mul(2)
            x = x.mul(3)
            x = x.mul(4)
            x = x.mul(5)
            x = x.mul(6)
            x = x.mul(7)
            x = x.mul(8)

    notes = notes_of(program, 3, monkeypatch)
    assert notes == ["1 op on rank 1, 0 ops on the others"] * 5 + [""]
