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
    return next((alive for ask in knowing if (alive := ask(device)) is not None), None)


def of_device(device: torch.device) -> Alive | None:
    """Return the memory of a device, simulated or not, that ever had something; else None."""
    alive = alive_on(device)
    if alive is None and torch.cuda.is_available() and torch.cuda.is_initialized():
        total = torch.cuda.get_device_properties(device).total_memory
        alive = _alive_on_real("", device)._replace(limit=total)
    return alive if alive is not None and alive.highest else None


def running(frame: FrameType | None) -> list[FrameType]:
    """Return the frames of other threads, then this frame and those around it; of each thread the innermost first."""
    own = list(outward(frame))
    tops = (top for ident, top in sys._current_frames().items() if ident != threading.get_ident())
    return [*(other for top in tops for other in outward(top)), *own]


def _alive_on_real(text: str, device: torch.device) -> Alive:
    """Return what a real device's allocator says; the error names the size of the segment, not of the tensor."""
    reserved = allocated = highest = 0
    if torch.cuda.is_available():
        reserved, allocated = torch.cuda.memory_reserved(device), torch.cuda.memory_allocated(device)
        highest = torch.cuda.max_memory_allocated(device)
    return Alive(device, _bytes_in(_ASKED, text), _bytes_in(_CAPACITY, text), reserved, allocated, (), highest)


def _bytes_in(size: re.Pattern[str], text: str) -> int:
    """Return the bytes that an error's text tells by a pattern; 0 where it does not."""
    match = size.search(text)
    return int(float(match[1]) * _UNITS.get(match[2], 0)) if match else 0


def _shortage_of(frames: list[FrameType], alive: Alive, epochs: set[int], allocated: int, *, at_once: bool) -> Shortage:
    """Ask who holds a device's memory, by the recorder's rows; what the line had in hand may be of no known storage."""
    holdings = census(frames, alive, epochs, at_once)
    rest = allocated - sum(holding.bytes for holding in holdings)
    if rest > WORTH * allocated:
        holdings.append(Holding("temporary", "", rest, NO_SITE, NO_TENSOR, NOBODY, 0))
    most, asked = max(allocated, alive.allocated), 0 if at_once else alive.asked
    return Shortage(str(alive.device), asked, alive.limit, alive.reserved, most, tuple(holdings))


def _with_rows_of_trace(memory: Shortage, done: Assembly) -> Shortage:
    """Return who held memory, with the trace's rows of sites and tensors in place of the recording's own."""
    tensors = done.tensors.rows_of(np.array([each.tensor for each in memory.holdings], dtype=np.int64)).tolist()
    sites = (SiteId(done.site_rows.get(holding.site, -1)) for holding in memory.holdings)
    rows = zip(memory.holdings, sites, tensors, strict=True)
    return replace(memory, holdings=tuple(held._replace(site=site, tensor=tensor) for held, site, tensor in rows))


_STEP: Final = 1.2  # from one height to the mark of the next
_SPENT: Final = 0.02  # of the time that the program took so far
_CLOSE_STEP: Final = 1.02
_CLOSE_SPENT: Final = 0.2
_FIRST: Final = 0.3  # seconds of the processor that may be spent at once
_CLOSE_FIRST: Final = 5.0


class LastHeight(NamedTuple):
    """Last height of a device; for each height before it the bytes, and how many storages each name had."""

    op: int
    memory: Shortage
    before: tuple[tuple[int, Mapping[Key, int]], ...] = ()

    def counts(self) -> tuple[Mapping[Key, int], ...]:
        """Return the counts at heights before that are `_STEP` apart, oldest first: close ones may be of one round."""
        backwards: list[Mapping[Key, int]] = []
        least = self.memory.allocated
        for allocated, counts in reversed(self.before):
            if allocated * _STEP <= least:
                least = allocated
                backwards.append(counts)
        return tuple(backwards[::-1])

    def all_counts(self) -> tuple[tuple[int, Mapping[Key, int]], ...]:
        """Return bytes and counts of all heights, this one too."""
        counts = Counter((holding.name, holding.scope) for holding in self.memory.holdings)
        return *self.before, (self.memory.allocated, dict(counts))


class Heights(Log):
    """Heights of all devices in one recording; `closely`: the user asked for them, so that they may take longer."""

    def __init__(self, recorder: Any, closely: bool) -> None:
        super().__init__()
        self.marks: dict[Any, int] = {}
        self.last: dict[Any, LastHeight] = {}
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
        before = self.last[device].memory.allocated if device in self.last else 0
        if self._spent > max(self._first, self._share * (now - self._begun)) and allocated < 2 * before:
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
        epochs, last = self._recorder.rows.epochs, self.last.get(device)
        memory = _shortage_of(running(sys._getframe(2)), alive, epochs, alive.allocated, at_once=True)
        self.last[device] = LastHeight(state.op, memory, last.all_counts() if last is not None else ())


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
        match = _GPU.search(text)
        device = torch.device("cuda", int(match[1]) if match else 0)
        with self.recorder.faults:  # the error is the program's own
            alive, epochs = alive_on(device) or _alive_on_real(text, device), self.recorder.rows.epochs
            memory = _shortage_of(frames, alive, epochs, _bytes_in(_ALLOCATED, text), at_once=False)
            self._last = replace(memory, block=_bytes_in(_ASKED, text))

    def end(self, errors: list[BaseException]) -> None:
        """Find the shortage that ended the program; one that it caught and went on from is a note of the recording."""
        error = next((error for error in errors if isinstance(error, torch.OutOfMemoryError)), None)
        if error is not None and self._text != text_of(error):  # raised where no op was recorded
            self._note(error, [frame for frame, _ in walk_tb(error.__traceback__)][::-1])
        elif error is None and self._last is not None:
            self.recorder.note("note.out-of-memory-caught", self._last.device, count=self._times)
            self._last = None

    def sites(self) -> Iterable[int]:
        memories = [height.memory for height in self.heights.last.values()]
        memories += [self._last] if self._last is not None else []
        return {holding.site for memory in memories for holding in memory.holdings if holding.site >= 0}

    def facts(self, done: Assembly) -> Iterable[object]:
        if self._last is not None:
            yield _with_rows_of_trace(self._last, done)
        for last in self.heights.last.values():
            memory = _with_rows_of_trace(last.memory, done)
            yield Height(OpId(done.op_of(last.op)), memory, last.counts(), self.heights.closely)

    def complete(self, trace: TraceData) -> TraceData:
        """Add the memory of each accelerator: of a simulated one as it was, of another as far as ops used it."""
        events = self.heights.events()
        names = [str(device) for device in trace.devices]
        simulated = [alive for name in names if name != "cpu" and (alive := alive_on(torch.device(name))) is not None]
        limits = {str(alive.device): alive.limit for alive in simulated}
        if len(events):
            lives = lives_in(trace, events, self.recorder.origin)
            return replace(trace, memory=tuple(curves(trace, lives, limits, is_exact=True)))
        by_use = curves(trace, lives_until_use(trace), limits, is_exact=False)
        return replace(trace, memory=tuple(curve for curve in by_use if curve.device not in ("cpu", "meta")))
