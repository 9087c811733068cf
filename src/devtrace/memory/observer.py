"""Watches the memory of devices while a recording runs: how high it gets, and who holds it then and when it ends.

What grows is found long before memory ends. A simulated device says when its memory is higher than a mark. Then all
that is alive is walked once, as at an error, if the walks so far took little of the time; the next mark is higher by a
part.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from time import process_time
from typing import Any, Final, NamedTuple

import torch

from devtrace.memory.census import Owned, census
from devtrace.memory.lives import Log, lives_in
from devtrace.memory.shortage import Height, Key
from devtrace.memory.shortage_recorder import Shortages, alive_on, running, shortage_of, with_rest
from devtrace.recording.columns.recorded_ops import RecordedOps
from devtrace.recording.finish.assemble import Assembled
from devtrace.recording.observer import Observer
from devtrace.runtime.observers import Alive, watching
from devtrace.runtime.patches import Patches
from devtrace.trace.curve import Curve
from devtrace.trace.ids import OpId
from devtrace.trace.memory_curves import curves, lives_until_use
from devtrace.trace.tables import TraceData

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
    owned: list[Owned]
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
        before = (*last.before, (last.alive.allocated, _counts(last.owned))) if last is not None else ()
        self.seen[device] = Seen(state.op, alive._replace(storages=(), asked=0), owned, before)


def curves_of(heights: Heights, trace: TraceData, origin: int) -> tuple[Curve, ...]:
    """Return the memory of each accelerator: of a simulated one as it was, of another as far as ops used it."""
    events = heights.events()
    devices = [str(each) for each in trace.devices]
    known = [alive for each in devices if each != "cpu" and (alive := alive_on(torch.device(each))) is not None]
    limits = {str(each.device): each.limit for each in known}
    if len(events):
        return tuple(curves(trace, lives_in(trace, events, origin), limits, is_exact=True))
    used = curves(trace, lives_until_use(trace), limits, is_exact=False)
    return tuple(each for each in used if each.device not in ("cpu", "meta"))


def _counts(owned: list[Owned]) -> Mapping[Key, int]:
    return Counter((each.name, each.scope) for each in owned)


class MemoryObserver(Observer):
    """Heights of all devices, and the shortage that ended the program."""

    def __init__(self, recorder: RecordedOps, asked: Mapping[str, Any]) -> None:
        super().__init__(recorder, asked)
        self.heights = Heights(recorder, bool(asked.get("memory")))
        self.shortages = Shortages(recorder)

    def install(self, patches: Patches, stack: ExitStack) -> None:
        self.heights.begin()
        watching.append(self.heights)
        stack.callback(watching.remove, self.heights)

    def note_error(self, error: BaseException) -> None:
        self.shortages.note_raised(error)

    def end(self, errors: list[BaseException]) -> None:
        self.shortages.end(errors)

    def sites(self) -> Iterable[int]:
        yield from self.shortages.sites()
        seen = self.heights.seen.values()
        yield from sorted({owned.site for each in seen for owned in each.owned if owned.site >= 0})

    def facts(self, done: Assembled) -> Iterable[object]:
        rows, rows_of = done.site_rows, done.tensors.rows_of
        yield from self.shortages.in_rows(rows, rows_of)
        for seen in self.heights.seen.values():
            memory = shortage_of(seen.alive, seen.owned, rows, rows_of)
            yield Height(OpId(done.op_of(seen.op)), memory, seen.counts(), self.heights.closely)

    def complete(self, trace: TraceData) -> TraceData:
        return replace(trace, memory=curves_of(self.heights, trace, self.recorder.origin))
