"""Watches the memory of devices while a recording runs: how high it gets, and who holds it then and when it ends.

What grows is found long before memory ends. A simulated device says when its memory is higher than a mark. Then all
that is alive is walked once, as at an error, if the walks so far took little of the time; the next mark is higher by a
part.
"""

import re
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from time import process_time
from traceback import walk_tb
from types import FrameType
from typing import Any, Final, NamedTuple

import numpy as np
import torch

from devtrace.memory.census import WORTH, census
from devtrace.memory.lives import Log, lives_in
from devtrace.memory.shortage import NOBODY, Height, Holding, Key, Shortage
from devtrace.recording.columns.recorded_ops import RecordedOps
from devtrace.recording.finish.assemble import Assembly
from devtrace.recording.finish.observer import Observer
from devtrace.runtime.observers import Alive, knowing, watching
from devtrace.runtime.patches import Patches
from devtrace.runtime.tracebacks import outward, text_of
from devtrace.trace.ids import NO_SITE, NO_TENSOR, OpId, SiteId
from devtrace.trace.memory_curves import curves, lives_until_use
from devtrace.trace.tables import TraceData

_SIZE: Final = r"([\d.]+) (\w+)"
_GPU: Final = re.compile(r"GPU (\d+) has a total capacity of ")
_CAPACITY: Final = re.compile(rf"GPU \d+ has a total capacity of {_SIZE}")
_ASKED: Final = re.compile(f"Tried to allocate {_SIZE}")
_ALLOCATED: Final = re.compile(f"Of the allocated memory {_SIZE} is allocated by PyTorch")
_UNITS: Final = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


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
    reserved = allocated = highest = 0
    if torch.cuda.is_available():
        reserved, allocated = torch.cuda.memory_reserved(device), torch.cuda.memory_allocated(device)
        highest = torch.cuda.max_memory_allocated(device)
    return Alive(device, _stated(_ASKED, text), _stated(_CAPACITY, text), reserved, allocated, (), highest)


def _stated(size: re.Pattern[str], text: str) -> int:
    """Return the bytes of which an error's text tells; 0 where it does not."""
    found = size.search(text)
    return int(float(found[1]) * _UNITS.get(found[2], 0)) if found else 0


def _shortage(frames: list[FrameType], alive: Alive, epochs: set[int], allocated: int, *, at_once: bool) -> Shortage:
    """Ask who holds a device's memory, by the recorder's rows; what the line had in hand may be of no known storage."""
    owned = census(frames, alive, epochs, at_once)
    rest = allocated - sum(each.bytes for each in owned)
    if rest > WORTH * allocated:
        owned.append(Holding("temporary", "", rest, NO_SITE, NO_TENSOR, NOBODY, 0))
    most = max(allocated, alive.allocated)
    return Shortage(str(alive.device), 0 if at_once else alive.asked, alive.limit, alive.reserved, most, tuple(owned))


def _of_trace(memory: Shortage, done: Assembly) -> Shortage:
    """Return who held memory by the rows of a trace."""
    rows = done.tensors.rows_of(np.array([each.tensor for each in memory.holdings], dtype=np.int64)).tolist()
    sites = (SiteId(done.site_rows.get(each.site, -1)) for each in memory.holdings)
    found = zip(memory.holdings, sites, rows, strict=True)
    return replace(memory, holdings=tuple(each._replace(site=site, tensor=row) for each, site, row in found))


_STEP: Final = 1.2
_SPENT: Final = 0.02  # of the time that the program took so far
_CLOSE_STEP: Final = 1.02
_CLOSE_SPENT: Final = 0.2
_FIRST: Final = 0.3  # seconds of the processor that may be spent at once
_CLOSE_FIRST: Final = 5.0


class Seen(NamedTuple):
    """Last height of a device, and how many storages each name had at those before, of so many bytes."""

    op: int
    memory: Shortage
    before: tuple[tuple[int, Mapping[Key, int]], ...] = ()

    def counts(self) -> tuple[Mapping[Key, int], ...]:
        """Return those that are as far apart as heights are that nobody asked for: one round has several close ones."""
        found: list[Mapping[Key, int]] = []
        least = self.memory.allocated
        for allocated, counts in reversed(self.before):
            if allocated * _STEP <= least:
                least = allocated
                found.append(counts)
        return tuple(found[::-1])

    def all_counts(self) -> tuple[tuple[int, Mapping[Key, int]], ...]:
        """Return those of this height too."""
        counts = Counter((each.name, each.scope) for each in self.memory.holdings)
        return *self.before, (self.memory.allocated, dict(counts))


class Heights(Log):
    """Heights of all devices in one recording; `closely`: asked for, so it may take longer."""

    def __init__(self, recorder: Any, closely: bool) -> None:
        super().__init__()
        self.marks: dict[Any, int] = {}
        self.seen: dict[Any, Seen] = {}
        self._recorder = recorder
        self.closely = closely
        self._step, self._share = (_CLOSE_STEP, _CLOSE_SPENT) if closely else (_STEP, _SPENT)
        self._first = _CLOSE_FIRST if closely else _FIRST
        self._begun = process_time()
        self._spent = 0.0
        self._looking = threading.Lock()

    def look_above(self, device: Any, allocated: int) -> None:
        now = process_time()
        self.marks[device] = int(allocated * self._step)
        last = self.seen[device].memory.allocated if device in self.seen else 0
        if self._spent > max(self._first, self._share * (now - self._begun)) and allocated < 2 * last:
            return
        if self._recorder.active and self._looking.acquire(blocking=False):
            try:
                self._look(device)
            except Exception as fault:  # noqa: BLE001 (the program goes on)
                self._recorder.fault(fault)
            finally:
                self._spent += process_time() - now
                self._looking.release()

    def _look(self, device: Any) -> None:
        state = self._recorder.states.get(threading.get_ident())
        alive = alive_on(device)
        if state is None or alive is None:
            return
        epochs, last = self._recorder.rows.epochs, self.seen.get(device)
        memory = _shortage(running(sys._getframe(2)), alive, epochs, alive.allocated, at_once=True)
        self.seen[device] = Seen(state.op, memory, last.all_counts() if last is not None else ())


class MemoryObserver(Observer):
    """Heights of all devices, and the last allocation that failed: the shortage that ended the program, or none."""

    of_errors = True

    def __init__(self, recorder: RecordedOps, asked: Mapping[str, Any]) -> None:
        super().__init__(recorder, asked)
        self.heights = Heights(recorder, bool(asked.get("memory")))
        self._last: Shortage | None = None
        self._text = ""
        self._times = 0

    def install(self, patches: Patches, stack: ExitStack) -> None:
        self.heights.begin()
        watching.append(self.heights)
        stack.callback(watching.remove, self.heights)

    def note_error(self, error: BaseException) -> None:
        """Note the shortage of an op, if it is one that raises in the frame above."""
        if isinstance(error, torch.OutOfMemoryError):
            self._note(error, running(sys._getframe(1)))

    def _note(self, error: BaseException, frames: list[FrameType]) -> None:
        """Ask who owns the memory of the device that an error names; `frames` are innermost first."""
        self._text = text = text_of(error)
        self._times += 1
        found = _GPU.search(text)
        device = torch.device("cuda", int(found[1]) if found else 0)
        with self.recorder.faults:  # the error is the program's own
            alive, epochs = alive_on(device) or _real(text, device), self.recorder.rows.epochs
            memory = _shortage(frames, alive, epochs, _stated(_ALLOCATED, text), at_once=False)
            self._last = replace(memory, block=_stated(_ASKED, text))

    def end(self, errors: list[BaseException]) -> None:
        """Find the shortage that ended the program; one that it caught and went on from is a note of the recording."""
        ended = next((each for each in errors if isinstance(each, torch.OutOfMemoryError)), None)
        if ended is not None and self._text != text_of(ended):  # raised where no op was recorded
            self._note(ended, [frame for frame, _ in walk_tb(ended.__traceback__)][::-1])
        elif ended is None and self._last is not None:
            self.recorder.note("note.out-of-memory-caught", self._last.device, count=self._times)
            self._last = None

    def sites(self) -> Iterable[int]:
        found = [seen.memory for seen in self.heights.seen.values()]
        found += [self._last] if self._last is not None else []
        return {each.site for memory in found for each in memory.holdings if each.site >= 0}

    def facts(self, done: Assembly) -> Iterable[object]:
        if self._last is not None:
            yield _of_trace(self._last, done)
        for seen in self.heights.seen.values():
            yield Height(OpId(done.op_of(seen.op)), _of_trace(seen.memory, done), seen.counts(), self.heights.closely)

    def complete(self, trace: TraceData) -> TraceData:
        """Add the memory of each accelerator: of a simulated one as it was, of another as far as ops used it."""
        events = self.heights.events()
        devices = [str(each) for each in trace.devices]
        known = [alive for each in devices if each != "cpu" and (alive := alive_on(torch.device(each))) is not None]
        limits = {str(each.device): each.limit for each in known}
        if len(events):
            lives = lives_in(trace, events, self.recorder.origin)
            return replace(trace, memory=tuple(curves(trace, lives, limits, is_exact=True)))
        used = curves(trace, lives_until_use(trace), limits, is_exact=False)
        return replace(trace, memory=tuple(each for each in used if each.device not in ("cpu", "meta")))
