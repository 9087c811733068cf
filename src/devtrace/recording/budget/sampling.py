"""Takes the dispatch mode off while a loop repeats what was recorded, and puts it back for one repetition in n.

    learn     every segment is recorded, until the last ones were repeated often enough: they are the loop
    off       only events are compared with the loop's
    sample    one repetition is recorded again; if it differs, learn

An event that the loop does not have, a module that is attached or moved, a parameter, a thread: each ends `off`.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Hashable
from functools import partial
from threading import get_ident
from time import thread_time_ns as clock
from typing import Any, Final

from devtrace.recording.budget.credit import Credit
from devtrace.recording.budget.events import of_call
from devtrace.recording.budget.lengths import Lengths
from devtrace.recording.budget.lines import Lines
from devtrace.recording.budget.segments import Beginnings, Segment, Trail, codes_of, repetitions, sites_of
from devtrace.recording.budget.waits import Waits
from devtrace.recording.columns.thread_state import NUMBERS, ThreadState, current_node, sequence_number
from devtrace.recording.hot.recorder import Recorder
from devtrace.runtime import mode_stack

NEEDED: Final = 6
"""So many equal repetitions make a loop. The rules on copies ask for five."""
NEEDED_AGAIN: Final = 2
"""... of a loop that was one before."""
FIRST_BATCH: Final = 32
SHARE_OF_RECORDING: Final = 0.25
"""Part of the budget that samples may take; learning and comparing events take the rest."""
_MOST_NEEDED: Final = 1 << 20
_OWN_FRAMES: Final = 2


class Sampling:
    """Decides for the thread that began the recording. `off`: nothing is recorded now."""

    state: ThreadState

    def __init__(self, recorder: Recorder, budget: float) -> None:
        self.recorder = recorder
        self.ident = -1
        self.off = False
        self.inside = False  # an outermost call that is not recorded
        self._share = budget * SHARE_OF_RECORDING
        self.trail = Trail(recorder)
        self.credit = Credit(recorder)
        self._beginnings = Beginnings(recorder)
        self.lines = Lines(self._at_an_unknown_line)
        self.waits = Waits(self._at_a_read)
        self._sites_of_loop = set[int]()
        self._events = 0
        self._given_up = False
        self._changed_inside = False
        self._needed = NEEDED
        self._sampling = False
        self._sampled = 0  # segments of the sample that ended
        self._late: Segment | None = None  # the loop's segment that is recorded from somewhere within
        self._goes_on = False  # ... and the loop goes on after it
        self._came_by: Hashable = None  # ... by the line that no repetition had
        self._checks = Counter[Hashable]()
        self._loop: list[Segment] = []
        self._done: list[int] = []
        self._position = self._passed = self._wanted = 0
        self._batch = FIRST_BATCH
        self._batches: dict[tuple[int, ...], int] = {}
        self._lengths = Lengths()
        self._height = self._regions = 0
        self._began = 0
        self._cost_off = 0.0
        self.ended_off = False
        self.recorded_repetitions = self.counted_repetitions = 0

    def begin(self, state: ThreadState) -> None:
        self.state, self.ident = state, state.ident

    # Events. Whatever goes wrong in here, the program runs on, recorded in full.

    def module_called(self, module: Any) -> None:
        """An outermost call of a module begins, in the frame below this one."""
        try:
            self._event(of_call(module, sys._getframe(_OWN_FRAMES)), in_region=False)
        except Exception as fault:  # noqa: BLE001
            self._give_up(fault)

    def call_ended(self) -> None:
        """An outermost call that was not recorded has ended."""
        self.inside = False
        if self._changed_inside:
            self._changed_inside = False
            self.changed()

    def stepping(self, optimizer: Any, *, closure: bool) -> bool:
        """Take an optimizer's step for an event; return whether it is not recorded."""
        if get_ident() != self.ident:
            return False
        if self.inside or self.state.opened or self.state.steps:
            return self.off
        try:
            if closure:
                self._given_up = True  # the closure calls modules within the step
            self._event((id(optimizer), closure), in_region=True)
        except Exception as fault:  # noqa: BLE001
            self._give_up(fault)
        return self.off

    def attaching(self, site: int) -> bool:
        """A module is attached; return whether that is not recorded, as each repetition does it: a slice of layers."""
        if get_ident() != self.ident:
            return False
        if not self.off:
            self.trail.attach(site)
        return self.off and site in self._loop[self._position].attached

    def changed(self) -> bool:
        """Something happens that no repetition has; return whether it was not recorded what came before it."""
        if not self.off or get_ident() != self.ident:
            return False
        if self.inside or current_node() is not None:
            self._changed_inside = True
            return True
        try:
            self._end_loop(self._passed)
            self._resume_within()
        except Exception as fault:  # noqa: BLE001
            self._give_up(fault)
        return True

    def stop(self) -> None:
        """End the recording."""
        try:
            if self.off:
                self.ended_off = True
                if not self.inside:  # what came after the last event has come to its end
                    self._done[self._position] += 1
                    self.credit.add(self._top(), -1)
                self._account()
                self._follow_again()
            elif self._late is not None:
                self.credit.add_rest(self._late, self.trail.ranges(), self._top().ranges)
                self._late = None
            self.lines.forget()
            self.waits.forget()
            self._note_what_was_counted()
        except Exception as fault:  # noqa: BLE001
            self._give_up(fault)

    def apply(self, state: ThreadState) -> None:
        """All ops of a thread are packed, and may be folded next: give them what was counted."""
        self.credit.apply(state)

    def _event(self, event: Hashable, *, in_region: bool) -> None:
        self._events += 1
        if self.off:
            self._compare(event, in_region)
        else:
            self._beginnings.note(event, self.state)
            self._learn(event, in_region)

    # Off.

    def _top(self) -> Segment:
        """Return what the segment that runs now lacks, if the loop ends in it."""
        return self._beginnings.top(
            self._loop[self._position], self._loop[(self._position + 1) % len(self._loop)].event
        )

    def _compare(self, event: Hashable, in_region: bool) -> None:
        self._done[self._position] += 1
        if event != self._loop[(self._position + 1) % len(self._loop)].event:
            self.credit.add(self._top(), -1)
        self.trail.add(self._loop[self._position])
        self._position = (self._position + 1) % len(self._loop)
        self._passed += self._position == 0
        if event != self._loop[self._position].event:
            self._end_loop(self._passed - (self._position == 0))
            self._resume(in_region)
            self._beginnings.note(event, self.state)
            self.trail.begin(event)
        elif self._position == 0 and (self._passed >= self._wanted or not self._is_alone()):
            self._cost_off = (clock() - self._began) / self._passed
            self._resume(in_region)
            self._needed = NEEDED
            self._lengths.add(self._passed)
            self._sampling, self._sampled = True, 0
            self.trail.begin(event)

    def _end_loop(self, passed: int) -> None:
        """Ask for more repetitions where a loop ended before it was worth the while."""
        if not self._passed:
            self._needed = min(2 * self._needed, _MOST_NEEDED)
        self._lengths.add(passed)
        self._lengths.end()

    def _resume_within(self) -> None:
        """Record on from here; the rest of the segment is found when it ends."""
        position = self._position
        self._resume(in_region=False)
        self._late, self._goes_on = self._loop[position], False
        self.trail.forget()
        self.trail.begin(None)

    def _at_an_unknown_line(self, line: Hashable) -> None:
        """Record a line that no repetition had, before it runs."""
        if not self.off or get_ident() != self.ident or self.inside or current_node() is not None:
            return
        try:
            self._resume_within()
            self._goes_on, self._came_by = True, line
        except Exception as fault:  # noqa: BLE001
            self._give_up(fault)

    def _at_a_read(self, frame: Any) -> bool:
        """Record a value that is read where no repetition reads one; return whether it is recorded."""
        try:
            if self.inside or get_ident() != self.ident or (site := self.state.where(frame)) in self._sites_of_loop:
                return False
            if mode_stack.all_are_ours():
                self._at_an_unknown_line(site)
        except Exception as fault:  # noqa: BLE001
            self._give_up(fault)
        return not self.off

    def _resume(self, in_region: bool) -> None:
        self._account()
        self._follow_again()
        state = self.state
        above = max(mode_stack.height() - self._height, 0)
        mode_stack.push_under(state.mode, above)
        state.number = sequence_number()
        state.regions = self._regions + in_region
        self._began = clock()

    def _account(self) -> None:
        for segment, times in zip(self._loop, self._done, strict=True):
            self.credit.add(segment, times)
        if any(self._done) and self.recorder.gap < 0:
            self.recorder.gap = self.state.op
        self.counted_repetitions += self._done[-1]
        self._done = [0] * len(self._loop)

    def _follow_again(self) -> None:
        self.lines.rest()
        self.waits.rest()
        self.off = self.inside = False
        with self.recorder.lock:
            self.recorder.states[self.ident] = self.state

    # On.

    def _learn(self, event: Hashable, in_region: bool) -> None:
        if self._given_up:
            return
        if self._late is not None:
            self._end_late(event, in_region)
            return
        segment = self.trail.end()
        self.trail.begin(event)
        if segment is None:
            return
        period = self._period(event)
        if period and event == self.trail.segments[-period].event:
            self._leave(period, in_region)

    def _end_late(self, event: Hashable, in_region: bool) -> None:
        late, self._late = self._late, None
        assert late is not None
        position = (self._position + 1) % len(self._loop)
        goes_on = event == self._loop[position].event
        self.credit.add_rest(late, self.trail.ranges(), () if goes_on else self._top().ranges)
        self.trail.forget()
        self.trail.begin(event)
        if not (self._goes_on and goes_on and self._may_leave()):
            return
        passed = self._passed + (position == 0)
        here = self._came_by, frozenset(segment.kind for segment in self._loop)
        self._checks[here] += 1
        if self._checks[here] <= NEEDED:
            self._check(position, passed)
            return
        self._take_off(in_region)
        self._position, self._passed = position, passed

    def _check(self, position: int, passed: int) -> None:
        """Record the rest of a repetition, and compare it: the loop may have begun again, and differ."""
        for segment in self._loop[:position]:
            self.trail.add(segment)
        self._lengths.add(passed)
        self._sampling, self._sampled = True, position
        self._cost_off = 0.0

    def _period(self, event: Hashable) -> int:
        """Return of how many segments the loop is that has come to the end of a repetition."""
        kinds = [segment.kind for segment in self.trail.segments]
        if self._sampling:
            loop = [segment.kind for segment in self._loop]
            self._sampled += 1
            sample = kinds[-self._sampled :]
            if sample == loop:
                return len(loop)
            self._sampling = sample == loop[: len(sample)]
            if self._sampling:
                return 0
            self._lengths.end()
        known = (
            len(loop) for loop in self._batches if tuple(kinds[-NEEDED_AGAIN * len(loop) :]) == NEEDED_AGAIN * loop
        )
        return self.trail.period(self._needed, event) or (next(known, 0) if self._needed == NEEDED else 0)

    def _leave(self, period: int, in_region: bool) -> None:
        """Take the mode off at the event that begins a repetition of the last segments."""
        if not self._may_leave():
            return
        kinds = [segment.kind for segment in self.trail.segments]
        repetition, loop = self.trail.segments[-period:], tuple(kinds[-period:])
        codes = partial(codes_of, self.recorder, repetition)
        if not self._sampling and not self.lines.are_known(loop, period, self._events, codes):
            return
        if self._sampling:
            self.recorded_repetitions += 1
            self._lengths.add(1)
            if self._cost_off:
                extra = max(clock() - self._began - self._cost_off, 0.0)
                limit = int(extra / (self._share * self._cost_off)) + 1
                self._batch = max(min(2 * self._batch, limit), FIRST_BATCH)
        else:
            found = repetitions(kinds, period)
            self.recorded_repetitions += found
            self._lengths.begin(tuple(segment.line for segment in repetition), found)
            self._batch = self._batches.get(loop, FIRST_BATCH)
            self._sites_of_loop = sites_of(self.recorder, repetition)
        self._batches[loop] = self._batch
        self._loop = repetition
        self._done = [0] * period
        left = self._lengths.until_the_last()
        self._sampling, self._sampled = left == 0, 0
        if self._sampling:
            self._began = clock()
            return
        self._position, self._passed = 0, 0
        self._wanted = self._batch if left is None or left > 2 * self._batch else left
        self._take_off(in_region)

    def _may_leave(self) -> bool:
        state = self.state
        return (
            self.recorder.active
            and not (state.opened or state.steps)
            and current_node() is None
            and mode_stack.all_are_ours()
            and self._is_alone()
        )

    def _is_alone(self) -> bool:
        """Return whether no other thread has run an op yet: those of a progress bar or a queue never do."""
        others = [state for state in list(self.recorder.states.values()) if state is not self.state]
        return not any(other.mode is not None and other.op & NUMBERS for other in others)

    def _take_off(self, in_region: bool) -> None:
        state = self.state
        if mode_stack.take_out(state.mode) is None:
            self._given_up = True
            return
        self._height = mode_stack.height()
        self._regions = state.regions - in_region
        with self.recorder.lock:
            self.recorder.states.pop(self.ident, None)
        self._began = clock()
        self.off = True
        if self.lines.are_seen:
            self.lines.watch()
        else:
            self.waits.watch()

    def _give_up(self, fault: Exception) -> None:
        """Record all from here on."""
        self._given_up = True
        self.recorder.fault(fault)
        if self.off:
            self._follow_again()
            mode_stack.push_under(self.state.mode, max(mode_stack.height() - self._height, 0))
            self.state.number = sequence_number()

    def _note_what_was_counted(self) -> None:
        if not self.credit.ops:
            return
        recorded, ops = self.recorded_repetitions, self.credit.ops
        self.recorder.note("note.repetitions", recorded=recorded, count=recorded + self.counted_repetitions, ops=ops)
        if not self.lines.are_seen:
            self.recorder.note("note.unseen-lines")
