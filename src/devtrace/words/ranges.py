"""Many numbers in few words."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

MOST_RUNS: Final = 8


def in_short(ranks: Sequence[int]) -> str:
    """Write 0, 1, 2, 5 as "0–2, 5"; of many stretches the first."""
    runs = list(_runs(ranks))
    return ", ".join(runs if len(runs) <= MOST_RUNS else [*runs[: MOST_RUNS - 1], "…"])


def _runs(ranks: Sequence[int]) -> Iterator[str]:
    for _, run in groupby(enumerate(sorted(ranks)), key=lambda at: at[1] - at[0]):
        numbers = [rank for _, rank in run]
        yield str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]}–{numbers[-1]}"
