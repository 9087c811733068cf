"""Cuts a recording into segments, from one event to the next, and finds where their sequence repeats.

An event is an outermost call of a module or a step of an optimizer. Calls are told apart by the module, and by all
calls that lead to its line. Two segments are the same if the same ops ran at the same lines and copied the same between
devices. Their layouts must not differ where both know them.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any, Final, NamedTuple

import numpy as np

from devtrace.recording.columns import sites
from devtrace.recording.columns.chunk import WIDTH, Array
from devtrace.recording.columns.recorded_ops import RecordedOps
from devtrace.recording.columns.thread_state import NUMBERS, ThreadState
from devtrace.recording.context.module_tree import is_training
from devtrace.runtime.tracebacks import outward

Event = tuple[Any, ...]
"""(module, whether it trains, calls that lead to it), or (optimizer, whether it has a closure); by their ids."""
_CALL = 3
_SEEN = (sites.USER, sites.LIBRARY)


def is_call(event: Hashable) -> bool:
    """Return whether an event is a module's call, and no step."""
    return isinstance(event, tuple) and len(event) == _CALL


class Events:
    """Calls as seen from where the recording began: what is around that, as the notebook's server, never changes."""

    def __init__(self) -> None:
        self._around: dict[int, CodeType] = {}
        self._known: dict[tuple[int, ...], int] = {}  # id and instruction of each caller -> a number for them

    def begin(self, frame: Any) -> None:
        self._around.update((id(each.f_code), each.f_code) for each in outward(frame))

    def of_call(self, module: Any, frame: Any) -> Event:
        """Return the event of a call that comes from a frame."""
        kinds, around, callers = sites.files, self._around, list[int]()
        while frame.f_back is not None and kinds[frame.f_code.co_filename] not in _SEEN:
            frame = frame.f_back
        while frame is not None:
            code = id(frame.f_code)
            callers += (code, frame.f_lasti)
            frame = None if code in around else frame.f_back
        key = tuple(callers)
        return id(module), is_training(module), self._known.get(key) or self._number(key)

    def _number(self, callers: tuple[int, ...]) -> int:
        """Return a number for the calls that lead to a frame: a function's loop is another one where that is called.

        A function that calls itself counts once, however deep.
        """
        number = self._known[callers] = hash(frozenset(zip(callers[::2], callers[1::2], strict=True)))
        return number


LONGEST_PERIOD: Final = 32
_MOST_KINDS: Final = 256
_MOST_FIRST_OPS: Final = 512
_MOST_KEPT: Final = 2048


class Range(NamedTuple):
    """Ops of one thread: begin <= number < end."""

    thread: int
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Segment:
    """Ops between two events; equal `kind`: the same ran."""

    event: Hashable
    kind: int
    ranges: tuple[Range, ...]
    attached: tuple[int, ...] = ()
    """Sites at which modules were attached."""

    @property
    def line(self) -> Hashable:
        """Return the event without its object: that of another model at the same line is the same."""
        return self.event[1:] if isinstance(self.event, tuple) else None

    @property
    def ops(self) -> int:
        return sum(part.end - part.begin for part in self.ranges)


def columns(state: ThreadState, begin: int, end: int) -> tuple[Array, Array, Array, Array]:
    """Return number, head, site and layout of a thread's ops with begin <= number < end that are not folded away."""
    parts = []
    for chunk in reversed(state.chunks):
        if not len(chunk) or chunk.number[-1] < begin:
            break
        first, last = np.searchsorted(chunk.number, (begin, end))
        parts.append(
            (chunk.number[first:last], chunk.head[first:last], chunk.site[first:last], chunk.layout[first:last])
        )
    first, last = (max(number - state.packed, 0) * WIDTH for number in (begin, end))
    table = np.array(state.heads[first:last], dtype=np.int64).reshape(-1, WIDTH)
    numbers = state.packed + first // WIDTH + np.arange(len(table))
    parts = [*parts[::-1], (numbers, table[:, 0], table[:, 1], table[:, 6])]
    number, head, site, layout = (np.concatenate([part[index] for part in parts]) for index in range(4))
    return number, head, site, layout


def sites_of(recorded: RecordedOps, segments: Sequence[Segment]) -> set[int]:
    found = set[int]()
    for segment in segments:
        for part in segment.ranges:
            _, _, site, _ = columns(recorded.threads[part.thread], part.begin, part.end)
            found.update(site.tolist())
    return found


def codes_of(recorded: RecordedOps, segments: Sequence[Segment]) -> set[CodeType]:
    """Return the user's code that runs ops of segments."""
    found = {sites.own(site) for site in sites_of(recorded, segments)}
    return {sites.position(site).code for site in found if site >= 0}


class FirstOps:
    """Ops before the first time of each event, among them those at a loop's top, before its first event.

    A segment from a loop's last event to its first one ends with those ops. The loop's last repetition lacks them.
    """

    def __init__(self, recorded: RecordedOps) -> None:
        self._recorded = recorded
        self._known: dict[Hashable, tuple[Hashable, Range]] = {}
        self._last: Hashable = None
        self._end = 0

    def note(self, event: Hashable, state: ThreadState) -> None:
        """An event begins in a thread, recorded."""
        now = state.op & NUMBERS
        if event not in self._known and len(self._known) < _MOST_KINDS:
            self._known[event] = self._last, Range(state.index, max(self._end, now - _MOST_FIRST_OPS), now)
        self._last, self._end = event, now

    def not_run_last(self, loop: Sequence[Segment], position: int) -> Segment:
        """Return those ops of a segment that the loop's last repetition lacks; none if the loop goes on within it."""
        segment, following = loop[position], loop[(position + 1) % len(loop)].event
        before, first = self._known.get(following, (segment.event, Range(0, 0, 0)))
        mine = [] if before == segment.event else [part for part in segment.ranges if part.thread == first.thread]
        return Segment(segment.event, segment.kind, tuple(self._common_end(part, first) for part in mine))

    def _common_end(self, whole: Range, first: Range) -> Range:
        number, head, site = self._ops(whole)
        _, other_head, other_site = self._ops(first)
        most = min(len(head), len(other_head))
        agree = (head[len(head) - most :] == other_head[len(other_head) - most :]) & (
            site[len(site) - most :] == other_site[len(other_site) - most :]
        )
        length = most if agree.all() else int(agree[::-1].argmin())
        return whole._replace(begin=int(number[len(number) - length]) if length else whole.end)

    def _ops(self, part: Range) -> tuple[Array, Array, Array]:
        number, head, site, _ = columns(self._recorded.threads[part.thread], part.begin, part.end)
        return number, head, site


class Segments:
    """Segments so far, the latest last."""

    def __init__(self, recorded: RecordedOps) -> None:
        self._recorded = recorded
        self.done: list[Segment] = []
        self._kinds: dict[Hashable, list[tuple[list[list[int]], int]]] = {}
        self._next = 0
        self._event: Hashable = None
        self._begins: list[int] = []
        self._copies = 0
        self._attached: list[int] = []

    def begin(self, event: Hashable) -> None:
        """Begin a segment with the op that comes next."""
        self._event = event
        self._begins = [state.op & NUMBERS for state in self._recorded.threads]
        self._copies = len(self._recorded.copies)
        self._attached = []

    def attach(self, site: int) -> None:
        """A module is attached in the segment that runs now."""
        if self._begins:
            self._attached.append(site)

    def ranges(self) -> tuple[Range, ...]:
        """Return the ops of the segment that runs now."""
        begins = [*self._begins, *([0] * (len(self._recorded.threads) - len(self._begins)))]
        return tuple(
            Range(index, begin, state.op & NUMBERS)
            for index, (state, begin) in enumerate(zip(self._recorded.threads, begins, strict=True))
        )

    def end(self) -> Segment | None:
        """End the segment that runs now, and add it to the others; None where none was begun."""
        if not self._begins:
            return None
        ranges = self.ranges()
        segment = Segment(self._event, self._kind(ranges), ranges, tuple(self._attached))
        self.add(segment)
        return segment

    def add(self, segment: Segment) -> None:
        """Add a segment that ended, or one that stands for it."""
        self.done.append(segment)
        if len(self.done) > _MOST_KEPT:
            del self.done[: _MOST_KEPT // 2]

    def forget(self) -> None:
        """Begin anew: what comes next follows none of the segments so far."""
        self.done.clear()
        self._begins = []

    def _kind(self, ranges: tuple[Range, ...]) -> int:
        found = [_lists(self._recorded.threads[part.thread], part.begin, part.end) for part in ranges]
        copies = tuple((copied.source, copied.target) for copied in self._recorded.copies[self._copies :])
        ops = tuple(hash((tuple(heads), tuple(ran_at))) for heads, ran_at, _ in found)
        layouts = [each for _, _, each in found]
        if len(self._kinds) > _MOST_KINDS:
            self._kinds.clear()
        known = self._kinds.setdefault((self._event, ops, copies, tuple(self._attached)), [])
        for others, kind in known:
            if layouts == others:
                return kind
            if all(map(_agree, layouts, others)):
                others[:] = [list(map(max, one, other)) for one, other in zip(layouts, others, strict=True)]
                return kind
        self._next += 1
        known.append((layouts, self._next))
        return self._next

    def kinds(self) -> list[int]:
        return [segment.kind for segment in self.done]

    def period(self, needed: int, event: Hashable) -> int:
        """Return the shortest number of segments that was repeated so often until an event begins it anew, or 0."""
        kinds = [segment.kind for segment in self.done[-needed * LONGEST_PERIOD :]]
        for period in range(1, min(LONGEST_PERIOD, len(kinds) // needed) + 1):
            if self.done[-period].event == event and repetitions(kinds, period) >= needed:
                return period
        return 0


def repetitions(kinds: Sequence[int], period: int) -> int:
    """Return how often the last `period` kinds stand at the end, one after the other."""
    last, found = kinds[-period:], 1
    while (found + 1) * period <= len(kinds) and kinds[-(found + 1) * period : -found * period] == last:
        found += 1
    return found


def _lists(state: ThreadState, begin: int, end: int) -> tuple[list[int], list[int], list[int]]:
    """Return head, site and layout of a thread's ops as `columns` does, quicker for those that are not packed."""
    if begin < state.packed:
        _, head, site, layout = columns(state, begin, end)
        return head.tolist(), site.tolist(), layout.tolist()
    rows = state.heads[(begin - state.packed) * WIDTH : (end - state.packed) * WIDTH]
    return rows[::WIDTH], rows[1::WIDTH], rows[6::WIDTH]


def _agree(one: list[int], other: list[int]) -> bool:
    return len(one) == len(other) and all(a == b or a < 0 or b < 0 for a, b in zip(one, other, strict=True))
