"""An allocation that failed: noted where it is raised, while all frames are there, and handed on without a tensor."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from traceback import walk_tb
from types import FrameType
from typing import Final

import numpy as np
import torch

from devtrace.memory.census import NOBODY, WORTH, Owned, census
from devtrace.memory.shortage import Holding, Shortage
from devtrace.recording.columns.recorded_ops import RecordedOps
from devtrace.recording.columns.tensor_rows import Array
from devtrace.runtime.observers import Alive, knowing
from devtrace.runtime.tracebacks import outward, text_of
from devtrace.trace.ids import SiteId

_GPU: Final = re.compile(r"GPU (\d+) has a total capacity of ([\d.]+ \w+)")
_ASKED: Final = re.compile(r"Tried to allocate ([\d.]+ \w+)")
_ALLOCATED: Final = re.compile(r"Of the allocated memory ([\d.]+ \w+) is allocated by PyTorch")
_UNITS: Final = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


@dataclass(frozen=True, slots=True)
class Noted:
    """An error's text, what the device said, and who holds what."""

    text: str
    alive: Alive
    owned: list[Owned]
    times: int


class Shortages:
    """Last allocation of a recording that failed."""

    def __init__(self, recorder: RecordedOps) -> None:
        self._recorder = recorder
        self.last: Noted | None = None
        self._ended_it = False

    def note_raised(self, error: BaseException) -> None:
        """Note the shortage of an op, if it is one that raises two frames above."""
        if isinstance(error, torch.OutOfMemoryError):
            self._note(error, running(sys._getframe(2)))

    def _note(self, error: BaseException, frames: list[FrameType]) -> None:
        """Ask who owns the memory of the device that an error names; `frames` are innermost first."""
        text = text_of(error)
        found = _GPU.search(text)
        device = torch.device("cuda", int(found[1]) if found else 0)
        times = self.last.times + 1 if self.last is not None else 1
        with self._recorder.faults:  # the error is the program's own
            alive = alive_on(device) or _real(text, device)
            stated = _ALLOCATED.search(text)
            allocated = _bytes(stated[1]) if stated else 0
            owned = with_rest(census(frames, alive, self._recorder.rows.epochs), allocated)
            alive = alive._replace(storages=(), allocated=max(allocated, alive.allocated))
            self.last = Noted(text, alive, owned, times)

    def end(self, errors: Iterable[BaseException]) -> None:
        """Find the shortage that ended the program; one that it caught and went on from is a note of the recording."""
        ended = next((each for each in errors if isinstance(each, torch.OutOfMemoryError)), None)
        noted, self._ended_it = self.last, ended is not None
        if ended is not None and (noted is None or noted.text != text_of(ended)):  # raised where no op was recorded
            self._note(ended, [frame for frame, _ in walk_tb(ended.__traceback__)][::-1])
        elif ended is None and noted is not None:
            self._recorder.note("note.out-of-memory-caught", str(noted.alive.device), count=noted.times)

    def sites(self) -> Iterator[int]:
        if self.last is not None and self._ended_it:
            yield from (each.site for each in self.last.owned if each.site >= 0)

    def in_rows(self, rows: Mapping[int, int], rows_of: Callable[[Array], Array]) -> Iterator[Shortage]:
        """Yield the shortage that ended the program, by the rows of the trace."""
        if self.last is not None and self._ended_it:
            yield shortage_of(self.last.alive, self.last.owned, rows, rows_of)


def with_rest(owned: list[Owned], allocated: int) -> list[Owned]:
    """Add what nothing leads to: what the line had in hand, where nobody knows the storages or it has ended."""
    rest = allocated - sum(each.bytes for each in owned)
    return [*owned, Owned("temporary", "", rest, -1, -1, NOBODY, 0)] if rest > WORTH * allocated else owned


def alive_on(device: torch.device) -> Alive | None:
    """Return what lives on a device, where it is simulated."""
    return next((answer for ask in knowing if (answer := ask(device)) is not None), None)


def of_device(device: torch.device) -> Alive | None:
    """Return the counts of a device that has anything, simulated or not."""
    found = alive_on(device)
    if found is None and torch.cuda.is_available() and torch.cuda.is_initialized():
        total = torch.cuda.get_device_properties(device).total_memory
        found = _real("", device)._replace(limit=total)
    return found if found is not None and found.highest else None


def running(frame: FrameType | None) -> list[FrameType]:
    """Return a frame and those around it, innermost first, below those of other threads."""
    own = list(outward(frame))
    others = (top for ident, top in sys._current_frames().items() if ident != threading.get_ident())
    return [*(each for top in others for each in outward(top)), *own]


def _real(text: str, device: torch.device) -> Alive:
    """Return what a real device's allocator says; the error names the size of the segment, not of the tensor."""
    asked, capacity = (_ASKED.search(text), _GPU.search(text))
    reserved = allocated = highest = 0
    if torch.cuda.is_available():
        reserved, allocated = torch.cuda.memory_reserved(device), torch.cuda.memory_allocated(device)
        highest = torch.cuda.max_memory_allocated(device)
    sizes = (_bytes(asked[1]) if asked else 0, _bytes(capacity[2]) if capacity else 0)
    return Alive(device, *sizes, reserved, allocated, (), highest)


def _bytes(text: str) -> int:
    number, _, unit = text.partition(" ")
    return int(float(number) * _UNITS.get(unit, 0))


def shortage_of(
    alive: Alive, owned: list[Owned], rows: Mapping[int, int], rows_of: Callable[[Array], Array]
) -> Shortage:
    found = rows_of(np.array([each.row for each in owned] or [0], dtype=np.int64)).tolist()
    holdings = tuple(
        Holding(each.kind, each.name, each.bytes, SiteId(rows.get(each.site, -1)), tensor, each.scope, each.contained)
        for each, tensor in zip(owned, found, strict=False)
    )
    return Shortage(str(alive.device), alive.asked, alive.limit, alive.reserved, alive.allocated, holdings)
