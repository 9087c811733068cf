"""The phases of a recording with a budget. Each takes the next event, and returns the phase that it leads to.

Learning    every segment is recorded, until the last ones were repeated often enough: they are the loop
Watching    nothing is recorded, and each event is compared with the loop's
Counting    nothing is recorded, and events are only counted: where comparing them takes too much of the budget
Sampling    one repetition is recorded again; if it differs, Learning
Joining     recorded from somewhere within a segment on, after something that no repetition has
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Hashable
from functools import partial
from typing import Final

from devtrace.recording.budget.loop import Loop
from devtrace.recording.budget.run import NEEDED, Run
from devtrace.recording.budget.segments import Event, Segment, codes_of, is_call, repetitions, sites_of
from devtrace.recording.columns.thread_state import current_node
from devtrace.recording.context import module_calls
from devtrace.runtime.tracebacks import outward

NEEDED_AGAIN: Final = 2
"""So many equal repetitions make a loop that was one before."""
_MOST_NEEDED: Final = 1 << 20


class Learning:
    """All is recorded, and segments are compared with those before."""

    def __init__(self, run: Run) -> None:
        self.run = run

    def step(self, event: Event, in_region: bool) -> Phase:
        """Take the next event, of an optimizer's step within torch's region for it."""
        if self.run.given_up:
            return self
        segment = self.run.segments.end()
        self.run.segments.begin(event)
        return self if segment is None else self.after(segment, event, in_region)

    def after(self, segment: Segment, event: Event, in_region: bool) -> Phase:
        period = self._period(event)
        return self._leave(self.run.segments.done[-period:], event, in_region) if period else self

    def _period(self, event: Event) -> int:
        """Return of how many segments the loop is whose repetition begins with an event, 0 for none."""
        run, segments = self.run, self.run.segments
        period = segments.period(run.needed, event)
        if not period and run.needed == NEEDED:
            kinds = tuple(segments.kinds())
            known = (len(loop) for loop in run.loops if kinds[-NEEDED_AGAIN * len(loop) :] == NEEDED_AGAIN * loop)
            period = next(known, 0)
        return period if period and segments.done[-period].event == event else 0

    def _leave(self, repetition: list[Segment], event: Event, in_region: bool) -> Phase:
        run, kinds = self.run, self.run.segments.kinds()
        loop_kinds = tuple(kinds[-len(repetition) :])
        codes = partial(codes_of, run.recorder, repetition)
        if not (
            run.may_take_off()
            and run.lines.are_known(frozenset(loop_kinds), len(repetition), run.events, codes)
            # A repetition begins with a module's call, where it has one: Counting counts until such a call.
            and (is_call(event) or not any(is_call(each.event) for each in repetition))
        ):
            return self
        loop = run.loops.setdefault(loop_kinds, Loop(run.share))
        loop.segments, loop.sites = repetition, sites_of(run.recorder, repetition)
        found = repetitions(kinds, len(repetition))
        loop.recorded += found
        run.lengths.begin(tuple(segment.line for segment in repetition), found)
        return _leave_out(run, loop, in_region)


class Sampling(Learning):
    """A repetition is recorded, and each of its segments compared with the loop's."""

    def __init__(self, run: Run, loop: Loop, position: int = 0) -> None:
        super().__init__(run)
        self.loop, self.position = loop, position
        self.began = run.clock() if position == 0 else 0

    def after(self, segment: Segment, event: Event, in_region: bool) -> Phase:
        run, loop = self.run, self.loop
        if segment.kind != loop.segments[self.position].kind:
            run.lengths.end()
            return Learning(run).after(segment, event, in_region)
        self.position += 1
        if self.position < len(loop.segments):
            return self
        if event != loop.segments[0].event or not run.may_take_off():
            run.lengths.end()
            return Learning(run)
        loop.segments = run.segments.done[-len(loop.segments) :]
        loop.recorded += 1
        run.lengths.add(1)
        if self.began:
            loop.note_sample(run.clock() - self.began)
        return _leave_out(run, loop, in_region)


class Watching:
    """Nothing is recorded for some repetitions of a loop; each event is compared."""

    def __init__(self, run: Run, loop: Loop, wanted: int, position: int = 0, passed: int = 0) -> None:
        self.run, self.loop, self.wanted = run, loop, wanted
        self.position, self.passed = position, passed
        self.spent = loop.watched
        self._times = [0] * len(loop.segments)
        self._offsets = [0] if position == 0 else []
        run.calls = 0
        if not run.lines.are_seen:
            run.reads.watch()
        self._began = run.clock() if position == passed == 0 else 0

    def step(self, event: Event, in_region: bool) -> Phase:
        """Take the next event, and compare it with the loop's."""
        run, loop = self.run, self.loop
        run.calls -= 1
        self._times[self.position] += 1
        run.segments.add(loop.segments[self.position])
        self.position = (self.position + 1) % len(loop.segments)
        self._offsets.append(-run.calls)
        if self.position == 0:
            self.passed += 1
            loop.note_offsets(self._offsets)
            self._offsets, run.calls = [0], 0
        as_ever = event == loop.segments[self.position].event
        return self if as_ever and self.position else self._reach(event, in_region, as_ever=as_ever)

    def _reach(self, event: Event, in_region: bool, *, as_ever: bool) -> Phase:
        """Begin the segment of `position`; where the event is not `as_ever`, the loop has ended."""
        run, loop = self.run, self.loop
        if not as_ever:
            run.counted.add(run.first_ops.not_run_last(loop.segments, self.position - 1), -1)
            self.end_loop(self.passed - (self.position == 0))
            self._account()
            run.put_back(in_region)
            run.first_ops.note(event, run.state)
            run.segments.begin(event)
            return Learning(run)
        if self.position or (self.passed < self.wanted and run.is_alone()):
            return self
        if self._began:
            self.spent.add(self.passed, run.clock() - self._began)
        run.lengths.add(self.passed)
        loop.left -= self.passed
        self._account()
        if loop.left > 0 and run.is_alone():
            return _next_window(run, loop)
        run.put_back(in_region)
        run.needed = NEEDED
        run.segments.begin(event)
        return Sampling(run, loop)

    def end_loop(self, passed: int | None = None) -> None:
        """Ask for more repetitions where a loop ended before it was worth the while."""
        if not self.passed and self.loop.left == self.loop.planned:
            self.run.needed = min(2 * self.run.needed, _MOST_NEEDED)
        self.run.lengths.add(self.passed if passed is None else passed)
        self.run.lengths.end()

    def _account(self) -> None:
        """Let the ops of the latest recorded repetition count for those that were left out."""
        run = self.run
        for segment, times in zip(self.loop.segments, self._times, strict=True):
            run.counted.add(segment, times)
        if any(self._times) and run.recorder.gap < 0:
            run.recorder.gap = run.state.op
        self.loop.left_out += self._times[-1]
        self._times = [0] * len(self._times)

    def is_inside(self) -> bool:
        """Return whether this thread is in an outermost call that is not recorded."""
        return self.run.skipped == self.run.ident

    def attaches(self, site: int) -> bool:
        """Return whether modules are attached at a site in the segment that runs now."""
        return site in self.loop.segments[self.position].attached

    def find_position(self) -> None:
        """Work out which segment runs now."""

    def record_from_here(self, line: Hashable = None) -> Phase:
        """Record on within a segment; what it had before is found when it ends."""
        run = self.run
        self._account()
        run.put_back(in_region=False)
        run.segments.forget()
        run.segments.begin(None)
        return Joining(run, self, line)

    def stop(self) -> None:
        run = self.run
        if not self.is_inside():  # what came after the last event has come to its end
            self._times[self.position] += 1
            run.counted.add(run.first_ops.not_run_last(self.loop.segments, self.position), -1)
        self._account()


class Counting(Watching):
    """Nothing is recorded for some repetitions; calls of modules, and steps, are counted down until they are over."""

    def __init__(self, run: Run, loop: Loop, wanted: int) -> None:
        super().__init__(run, loop, wanted)
        self.spent = loop.counted
        run.reads.forget()
        self._made = 0  # calls so far
        self._until = wanted * loop.offsets[-1]
        run.skipped, run.calls = run.ident, self._until

    def step(self, event: Event, in_region: bool) -> Phase:
        """Take the call with which the count has come to its end."""
        run = self.run
        self.find_position()
        if current_node() is not None or calls_around() > 1:
            self.end_with_next_call()
            return self
        as_ever = event == self.loop.segments[self.position].event and not run.changed_inside
        run.changed_inside = False
        return self._reach(event, in_region, as_ever=as_ever)

    def end_with_next_call(self) -> None:
        self._until = self.run.calls = 1

    def find_position(self) -> None:
        offsets = self.loop.offsets
        self._made += self._until - self.run.calls
        self._until = self.run.calls
        self.passed, calls = divmod(self._made, offsets[-1])
        self.position = bisect_right(offsets, calls, hi=len(offsets) - 1) - 1
        self._times = [self.passed + (index < self.position) for index in range(len(self._times))]

    def is_inside(self) -> bool:
        return calls_around() > 0

    def attaches(self, site: int) -> bool:
        return any(site in segment.attached for segment in self.loop.segments)


class Joining:
    """A segment is recorded from somewhere within; its loop may go on after it, if a `line` was the reason."""

    def __init__(self, run: Run, left: Watching, line: Hashable) -> None:
        self.run, self.left, self.line = run, left, line

    def step(self, event: Event, in_region: bool) -> Phase:
        run, left, loop = self.run, self.left, self.left.loop
        if run.given_up:
            return self
        position = (left.position + 1) % len(loop.segments)
        goes_on = event == loop.segments[position].event
        self.add_what_came_before(goes_on=goes_on)
        run.segments.forget()
        run.segments.begin(event)
        if self.line is None or not goes_on or not run.may_take_off():
            return Learning(run)
        passed = left.passed + (position == 0)
        loop.left_for[self.line] += 1
        if loop.left_for[self.line] > NEEDED and run.take_off(in_region):
            return Watching(run, loop, max(left.wanted, passed + 1), position, passed)
        # The loop may have begun again, and differ: the rest of a repetition is recorded and compared.
        for segment in loop.segments[:position]:
            run.segments.add(segment)
        run.lengths.add(passed)
        return Sampling(run, loop, position)

    def add_what_came_before(self, *, goes_on: bool) -> None:
        run, segments, position = self.run, self.left.loop.segments, self.left.position
        lacking = () if goes_on else run.first_ops.not_run_last(segments, position).ranges
        run.counted.add_unrecorded(segments[position], run.segments.ranges(), lacking)


Phase = Learning | Watching | Joining


def _leave_out(run: Run, loop: Loop, in_region: bool) -> Phase:
    """Leave out repetitions from an event on that begins one: as many as the loop's length and its costs allow."""
    left = run.lengths.until_the_last()
    if left == 0:
        return Sampling(run, loop)
    loop.begin_batch(left)
    return _next_window(run, loop) if run.take_off(in_region) else Learning(run)


def _next_window(run: Run, loop: Loop) -> Phase:
    is_counted, repetitions = loop.window()
    return (Counting if is_counted else Watching)(run, loop, repetitions)


def calls_around() -> int:
    """Return how many calls of modules this thread is in, one that just begins among them."""
    return sum(frame.f_code is module_calls.budgeted.__code__ for frame in outward(sys._getframe(2)))
