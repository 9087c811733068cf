"""Watches the memory of devices while a recording runs: how high it gets, and who holds it then and when it ends.

What grows is found long before memory ends. A simulated device says when its memory is higher than a mark. Then all
that is alive is walked once, as at an error, if the walks so far took little of the time; the next mark is higher by a
part.
"""

from __future__ import annotations

import re
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
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
from devtrace.recording.columns.tensor_rows import Array
from devtrace.recording.finish.assemble import Assembly
from devtrace.recording.finish.observer import Observer
from devtrace.runtime.observers import Alive, knowing, watching
from devtrace.runtime.patches import Patches
from devtrace.runtime.tracebacks import outward, text_of
from devtrace.trace.ids import NO_SITE, NO_TENSOR, OpId, SiteId, TensorId
from devtrace.trace.memory_curves import curves, lives_until_use
from devtrace.trace.tables import TraceData

_GPU: Final = re.compile(r"GPU (\d+) has a total capacity of ([\d.]+ \w+)")
_ASKED: Final = re.compile(r"Tried to allocate ([\d.]+ \w+)")
_ALLOCATED: Final = re.compile(r"Of the allocated memory ([\d.]+ \w+) is allocated by PyTorch")
_UNITS: Final = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


@dataclass(frozen=True, slots=True)
class Noted:
    """An error's text, what the device said, and who holds what."""

    text: str
    alive: Alive
    owned: list[Holding]
    times: int


def with_rest(owned: list[Holding], allocated: int) -> list[Holding]:
    """Add what nothing leads to: what the line had in hand, where nobody knows the storages or it has ended."""
    rest = allocated - sum(each.bytes for each in owned)
    more = [Holding("temporary", "", rest, NO_SITE, NO_TENSOR, NOBODY, 0)] if rest > WORTH * allocated else []
    return [*owned, *more]


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
    alive: Alive, owned: list[Holding], rows: Mapping[int, int], rows_of: Callable[[Array], Array]
) -> Shortage:
    found = rows_of(np.array([each.tensor for each in owned] or [TensorId(0)], dtype=np.int64)).tolist()
    holdings = tuple(
        each._replace(site=SiteId(rows.get(each.site, -1)), tensor=tensor)
        for each, tensor in zip(owned, found, strict=False)
    )
    return Shortage(str(alive.device), alive.asked, alive.limit, alive.reserved, alive.allocated, holdings)


_STEP: Final = 1.2
_SPENT: Final = 0.02  # of the time that the program took so far
_CLOSE_STEP: Final = 1.02
_CLOSE_SPENT: Final = 0.2
_FIRST: Final = 0.3  # seconds of the processor that may be spent at once
_CLOSE_FIRST: Final = 5.0


class Seen(NamedTuple):
    """Last height of a device, and how many storages each name had at those before, of so many bytes."""

    op: int
    alive: Alive
    owned: list[Holding]
    before: tuple[tuple[int, Mapping[Key, int]], ...]

    def counts(self) -> tuple[Mapping[Key, int], ...]:
        """Return those that are as far apart as heights are that nobody asked for: one round has several close ones."""
        found: list[Mapping[Key, int]] = []
        least = self.alive.allocated
        for allocated, counts in reversed(self.before):
            if allocated * _STEP <= least:
                least = allocated
                found.append(counts)
        return tuple(found[::-1])


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
        last = self.seen[device].alive.allocated if device in self.seen else 0
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
        known = census(running(sys._getframe(2)), alive, self._recorder.rows.epochs, at_once=True)
        owned = with_rest(known, alive.allocated)
        last = self.seen.get(device)
        before = last.before if last is not None else ()
        if last is not None:
            counts = dict(Counter((each.name, each.scope) for each in last.owned))
            before = (*before, (last.alive.allocated, counts))
        self.seen[device] = Seen(state.op, alive._replace(storages=(), asked=0), owned, before)


class MemoryObserver(Observer):
    """Heights of all devices, and the last allocation that failed: the shortage that ended the program, or none."""

    of_errors = True

    def __init__(self, recorder: RecordedOps, asked: Mapping[str, Any]) -> None:
        super().__init__(recorder, asked)
        self.heights = Heights(recorder, bool(asked.get("memory")))
        self._last: Noted | None = None

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
        text = text_of(error)
        found = _GPU.search(text)
        device = torch.device("cuda", int(found[1]) if found else 0)
        times = self._last.times + 1 if self._last is not None else 1
        with self.recorder.faults:  # the error is the program's own
            alive = alive_on(device) or _real(text, device)
            stated = _ALLOCATED.search(text)
            allocated = _bytes(stated[1]) if stated else 0
            owned = with_rest(census(frames, alive, self.recorder.rows.epochs), allocated)
            alive = alive._replace(storages=(), allocated=max(allocated, alive.allocated))
            self._last = Noted(text, alive, owned, times)

    def end(self, errors: list[BaseException]) -> None:
        """Find the shortage that ended the program; one that it caught and went on from is a note of the recording."""
        ended = next((each for each in errors if isinstance(each, torch.OutOfMemoryError)), None)
        noted = self._last
        if ended is not None and (noted is None or noted.text != text_of(ended)):  # raised where no op was recorded
            self._note(ended, [frame for frame, _ in walk_tb(ended.__traceback__)][::-1])
        elif ended is None and noted is not None:
            self.recorder.note("note.out-of-memory-caught", str(noted.alive.device), count=noted.times)
            self._last = None

    def sites(self) -> Iterable[int]:
        held = [seen.owned for seen in self.heights.seen.values()]
        held += [self._last.owned] if self._last is not None else []
        return {each.site for owned in held for each in owned if each.site >= 0}

    def facts(self, done: Assembly) -> Iterable[object]:
        rows, rows_of = done.site_rows, done.tensors.rows_of
        if self._last is not None:
            yield shortage_of(self._last.alive, self._last.owned, rows, rows_of)
        for seen in self.heights.seen.values():
            memory = shortage_of(seen.alive, seen.owned, rows, rows_of)
            yield Height(OpId(done.op_of(seen.op)), memory, seen.counts(), self.heights.closely)

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
