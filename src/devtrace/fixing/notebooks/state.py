"""What a job that fixes a notebook is asked, and what it says of itself, to its processes and to the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NotRequired, TypedDict

from devtrace.fixing.rounds import Refusal

if TYPE_CHECKING:
    from devtrace.fixing.running import Running


class PageCell(TypedDict):
    """A code cell as it stands in the page, what it raised there, and the seconds that it took; 0: unknown."""

    cell: str
    source: str
    raised: str
    took: float


class Job(TypedDict):
    """A fix that is asked for, of the first error alone if it is `one`. `as_far`: others are below its last cell."""

    devices: str
    as_far: bool
    one: bool
    cells: list[PageCell]


@dataclass(frozen=True)
class Beginning:
    """Position of a job: behind cells that have run, in what `start` starts, for `limit` seconds; else at the top."""

    start: Callable[[Mapping[str, str], str], Running] | None = None
    position: int = 0
    limit: float | None = None


class Hunk(TypedDict):
    """Lines that a fix changes, in the cell as earlier fixes left it. `file` instead of a cell: a module's."""

    cell: str
    file: str
    line: int
    before: str
    after: str


class Bug(TypedDict):
    """An error on the way through the notebook, what mends it, and what did not."""

    cell: str
    line: int
    message: str
    help: str
    hunks: list[Hunk]
    refused: NotRequired[list[Refusal]]


class Changed(TypedDict):
    """A cell before and after all fixes."""

    cell: str
    before: str
    after: str


class Fixing(TypedDict):
    """Progress, and in the end what came of it. `run`: what has to run, in order, `needed` only for the others.

    Texts of bugs have the numbers of `cells` in their order. While it runs, `changed` are the changes that held so far.
    The running cell took `expected` seconds before, and `below` cells follow it.
    """

    state: Literal["running", "proven", "tried", "left", "failed", "cancelled"]
    round: int
    cells: list[str]
    cell: str
    bugs: list[Bug]
    closing: str
    changed: list[Changed]
    run: list[str]
    needed: list[str]
    left: NotRequired[Bug]
    expected: NotRequired[float]
    below: NotRequired[int]


def first_state() -> Fixing:
    return {
        "state": "running", "round": 0, "cells": [], "cell": "", "bugs": [], "closing": "", "changed": [], "run": [],
        "needed": [],
    }  # fmt: skip
