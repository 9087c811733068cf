"""Remembers from one recording to the next: a tensor keeps its birth in one cell when another is traced."""

import itertools
import weakref
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, Final

import torch

from devtrace.recording.columns.module_notes import Happening, ModuleNotes
from devtrace.runtime.tracebacks import entries_of
from devtrace.source.live_objects import CellText

Past = tuple[int, torch.device, torch.dtype, Any]
"""What a tensor was copied from: (site of birth, device, dtype, earlier past), nearest first."""
Stamp = tuple[int, dict[Any, int], int, Past | None]
"""See `stamps`."""
MOST_MOVES: Final = 2_000
UNCOUNTED: Final = -1
"""Tensors of a move that changed nothing: counted when it is asked for."""


@dataclass(frozen=True, slots=True)
class CodePosition:
    """An instruction of a code object; `cell` is what the code's file name meant when the code was first seen."""

    code: CodeType
    instruction: int
    caller: int
    cell: CellText | None


@dataclass(slots=True)
class States:
    """An optimizer: the number of parameters whose state has a birth, and where the rest is born."""

    optimizer: weakref.ref[torch.optim.Optimizer]
    known: int
    site: int


ErrorMark = tuple[int, CodeType, int]
"""An exception that may be gone: its address, which another one may get, and the instruction that raised it."""


def mark_of(error: BaseException | None) -> ErrorMark | None:
    entries = entries_of(error)
    return (id(error), entries[-1].tb_frame.f_code, entries[-1].tb_lasti) if entries else None


@dataclass(frozen=True, slots=True)
class MovedModule:
    """`.to()` or the like of a module.

    `device` is where its tensors went (None: all stayed where they were), `stamps` are those of each tensor that moved,
    before and after. `handling` is the mark of the exception that was being handled.
    """

    module: weakref.ref[torch.nn.Module]
    device: torch.device | None
    tensors: int
    stamps: tuple[tuple[Stamp, Stamp], ...]
    at: Happening
    handling: ErrorMark | None = None


@dataclass(slots=True)
class ProcessHistory:
    """One per process. Sites are never forgotten, because the stamps of live tensors name them."""

    cells: dict[str, CellText] = field(default_factory=dict)  # by file name
    numbers: dict[str, int] = field(default_factory=dict)  # of cells now, by their ids
    cell_of_code: dict[int, CellText | None] = field(default_factory=dict)
    positions: list[CodePosition] = field(default_factory=list)  # by site
    called_from: dict[tuple[int, int], dict[int, int]] = field(default_factory=dict)  # sites, as `sites.known`
    epochs: Iterator[int] = field(default_factory=itertools.count)
    # Stamps of tensors whose storage takes no attribute (sparse, mkldnn), or of all where the self-test fails.
    odd_stamps: dict[int, tuple[weakref.ref[Any], Stamp]] = field(default_factory=dict)
    ticks: Iterator[int] = field(default_factory=itertools.count)
    births: dict[int, Stamp] = field(default_factory=dict)  # by site
    modules: ModuleNotes = field(default_factory=ModuleNotes)
    moves: deque[MovedModule] = field(default_factory=lambda: deque(maxlen=MOST_MOVES))
    stateful: dict[int, States] = field(default_factory=dict)


history: Final = ProcessHistory()
