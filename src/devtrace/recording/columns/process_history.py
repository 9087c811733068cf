"""Remembers from one recording to the next: a tensor keeps its birth in one cell when another is traced."""

from __future__ import annotations

import itertools
import weakref
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, Final, NamedTuple

import torch

from devtrace.source.live_objects import CellText

Past = tuple[int, torch.device, Any]
"""Where a tensor was copied from: (site of birth, device, earlier past), nearest first."""
Stamp = tuple[int, dict[Any, int], int, Past | None]
"""See `stamps`."""
MOST_MOVES: Final = 2_000


@dataclass(frozen=True, slots=True)
class CodePosition:
    """An instruction of a code object; `cell` is what the code's file name meant when the code was first seen."""

    code: CodeType
    instruction: int
    caller: int
    cell: CellText | None


@dataclass(frozen=True, slots=True)
class Happening:
    """When and where: `tick` counts all happenings of the process, `op` is the number of the next op of the recording
    that was running, in its thread (-1: none was)."""

    site: int
    tick: int
    op: int


class Attached(NamedTuple):
    """A module became part of another."""

    module: weakref.ref[torch.nn.Module]
    parent: weakref.ref[torch.nn.Module]
    name: str
    site: int
    tick: int
    op: int

    @property
    def at(self) -> Happening:
        return Happening(self.site, self.tick, self.op)


class Registered(NamedTuple):
    """A module got a parameter or a buffer by a name."""

    module: weakref.ref[torch.nn.Module]
    site: int
    tick: int
    op: int

    @property
    def at(self) -> Happening:
        return Happening(self.site, self.tick, self.op)


class States(NamedTuple):
    """What is known of an optimizer: the number of parameters whose state has a birth, and where the rest is born."""

    optimizer: weakref.ref[torch.optim.Optimizer]
    known: int
    site: int


# One for each module and tensor that is built: tuples of the fields above, which cost half of what a class does.
AttachedFields = tuple[weakref.ref[torch.nn.Module], weakref.ref[torch.nn.Module], str, int, int, int]
RegisteredFields = tuple[weakref.ref[torch.nn.Module], int, int, int]
FEWEST_TO_SWEEP: Final = 4_096


@dataclass(frozen=True, slots=True)
class Moved:
    """`.to()` or the like of a module.

    `device` is where its tensors went (None: all stayed where they were), `stamps` are those of each tensor that moved,
    before and after.
    """

    module: weakref.ref[torch.nn.Module]
    device: torch.device | None
    tensors: int
    stamps: tuple[tuple[Stamp, Stamp], ...]
    at: Happening


@dataclass(slots=True)
class ProcessHistory:
    """One per process. Sites are never forgotten, because the stamps of live tensors name them."""

    cells: dict[str, CellText] = field(default_factory=dict)  # by file name
    cell_of_code: dict[int, CellText | None] = field(default_factory=dict)
    positions: list[CodePosition] = field(default_factory=list)  # by site
    sites_with_caller: dict[tuple[int, int, int], int] = field(default_factory=dict)
    epochs: Iterator[int] = field(default_factory=itertools.count)
    # Stamps of tensors whose storage takes no attribute (sparse, mkldnn), or of all where the self-test fails.
    odd_stamps: dict[int, tuple[weakref.ref[Any], Stamp]] = field(default_factory=dict)
    ticks: Iterator[int] = field(default_factory=itertools.count)
    attached: dict[int, AttachedFields] = field(default_factory=dict)
    registered: dict[tuple[int, str], RegisteredFields] = field(default_factory=dict)
    sweep_at: int = FEWEST_TO_SWEEP
    moves: deque[Moved] = field(default_factory=lambda: deque(maxlen=MOST_MOVES))
    stateful: dict[int, States] = field(default_factory=dict)

    def forget_modules(self) -> None:
        """Forget where modules were attached and moved, and which optimizers have stepped."""
        self.attached.clear()
        self.registered.clear()
        self.moves.clear()
        self.stateful.clear()

    def sweep(self) -> None:
        """Forget the modules that are gone. Cheaper than a callback for each, as it runs when their number doubles."""
        for table in (self.attached, self.registered):
            for key, found in list(table.items()):
                if found[0]() is None:
                    table.pop(key, None)  # type: ignore[call-overload]
        self.sweep_at = max(FEWEST_TO_SWEEP, 2 * max(len(self.attached), len(self.registered)))


history: Final = ProcessHistory()
