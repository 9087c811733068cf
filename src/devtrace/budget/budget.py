"""Keeps a long recording cheap: what repeats is recorded while it is new, then now and then, and counted in between.

An event is an outermost call of a module, or a step of an optimizer; from one to the next runs a segment. Once all
segments since an event's last time are known, events are only counted. After so many of that one a repetition is
recorded again. Something new (a segment, a line, a thread, a module that is attached or moved) is recorded until known.
"""

import sys
from collections import Counter
from math import isfinite
from threading import get_ident
from time import thread_time_ns
from typing import Any, Final

from devtrace.budget.lines import Lines
from devtrace.budget.segments import FIRST_BATCH, Event, Key, Run, Segment
from devtrace.recording.columns.sites import find
from devtrace.recording.columns.thread_state import NUMBERS, ThreadState, current_node
from devtrace.recording.context.module_tree import attributes
from devtrace.recording.hot.recorder import Recorder
from devtrace.runtime import mode_stack
from devtrace.runtime.tracebacks import outward
from devtrace.runtime.watched_reads import READS
from devtrace.runtime.watching import Faults

_SHARE_OF_RECORDING: Final = 0.25  # of the budget: what is learned, and what stays of the hooks, takes the rest
_MANY_OPS: Final = 50_000
_MOST_EVENTS: Final = 512
_CHANGE_KEY: Final[Key] = ()
_LINE: Final = 2  # numbers of such a key
_READ_AT, _ATTACHED_AT = -1, -2


class Budget:
    """Sampler of a recording that may take a `share` of the program's time."""

    def __init__(self, recorder: Recorder, share: float) -> None:
        self.off = self._given_up = self._changed = False
        self.ident = self.inside = -1
        self._recorder, self._share, self._faults = recorder, share, Faults(self._give_up)
        self._lines = Lines(self._is_known)
        self._known: set[Key] = set()  # lines of segments that are known
        self._lines_run: set[Key] = set()  # lines that this segment ran
        self._events: dict[Key, Event] = {}
        self._event = Event(())  # the last event
        self._run = Run(recorder, 0)  # what is recorded after it
        self._run_of_skipped_beginning: Run | None = None  # counts for it where its segment's end is recorded
        self._known_round: set[Event] = set()  # events since the last segment that is not known
        self._skipped_event: Event | None = None  # whose repetitions are left out
        self._to_skip = 0  # repetitions of it that are still to come
        self._skipping_since = 0  # when they, or the recorded one after them, began; 0 where something else ran too
        self._lengths: dict[Key, int] = {}  # by place: repetitions until the loop there ended
        self._skip_counts: Counter[Segment] = Counter()  # how often each segment was skipped
        self._loop = self._ops = 0  # loops that have ended; ops that are counted

    def begin(self, state: ThreadState) -> None:
        self._state, self.ident = state, state.ident
        self._around = {id(frame.f_code) for frame in outward(sys._getframe(1))}  # what is around it never changes

    def leaves_out(self, module: Any) -> bool:
        if not self._is_between():
            return False
        key = [id(module), attributes(module).get("training") is True]
        frame: Any = sys._getframe(2)
        while frame is not None:  # `outward` takes twice as long, in each call of a module
            code = id(frame.f_code)
            key += (code, frame.f_lasti)
            frame = None if code in self._around else frame.f_back
        self.inside = self.ident if self._take_event(tuple(key)) else -1
        return self.off

    def end_call(self) -> None:
        self.inside = -1
        if self._changed:
            self._take_change(_CHANGE_KEY)

    def step(self, optimizer: Any) -> bool:
        return self._take_event((id(optimizer),)) if self._is_between() else self.off

    def attach(self, site: int) -> bool:
        return self._is_known((_ATTACHED_AT, site))

    def change(self) -> bool:
        is_off = self._changed = self.off
        if is_off:
            self._take_change(_CHANGE_KEY)
        elif self._run_of_skipped_beginning is None:
            self._end_loop(self._event)
        return is_off

    def stop(self) -> None:
        if self.ident < 0:
            return
        with self._faults:
            if not self.off:
                self._end_run()
            elif self.inside < 0 and (last_run := self._event.last) is not None:
                self._ops += last_run.count(1, last_run.next_round())  # what came after the event has ended
            self._count_left_out()
            self._lines.forget()
            READS.forget()
            self._add_note()
        self.ident = self.inside = -1

    def _is_between(self) -> bool:
        """Return whether the program is outside of all modules' calls, optimizers' steps and backward passes."""
        return self.inside < 0 and not self._state.opened and not self._state.steps and current_node() is None

    def _take_event(self, key: Key) -> bool:
        """Go on to the next event, a key of `_events`; return whether recording is off after it."""
        try:
            segment = self._event.after.get(key)
            if not self.off:
                self._record_event(key)
            elif segment is not None and segment.is_known and not self._changed:
                self._skip_counts[segment] += 1
                event = self._event = segment.end
                if event is self._skipped_event:
                    self._skip_repetition(event)
            else:
                self._run_of_skipped_beginning, self._skipping_since = self._event.last, 0
                if len(key) != _LINE:
                    self._end_loop()
                self._resume_recording(self._event_at(key))
        except Exception as fault:  # noqa: BLE001 (a `with` takes longer than the rest)
            self._give_up(fault)
        return self.off

    def _take_change(self, key: Key) -> bool:
        """Resume recording for something new in the middle of a segment; return whether it is recorded."""
        if self.off and self._is_between():
            self._take_event(key)
        return not self.off

    def _is_known(self, line: Key) -> bool:
        """Return whether the line that is about to run is known; if not, record it."""
        is_known = line in self._known
        if not is_known and get_ident() == self.ident and self._take_change(line):
            self._lines_run.add(line)
        return is_known

    def _at_a_read(self, frame: Any) -> None:
        with self._faults:
            self._is_known((_READ_AT, find(frame)))

    def _skip_repetition(self, event: Event) -> None:
        """Skip one more repetition of the event, or record it if it is the last of those to skip."""
        self._to_skip -= 1
        if self._to_skip > 0 and self._runs_alone():
            event.repetitions += 1
            return
        now = thread_time_ns()
        if self._skipping_since:
            event.skipped_time = min(event.skipped_time, (now - self._skipping_since) / (event.batch - self._to_skip))
            self._skipping_since = now
        self._resume_recording(event)

    def _record_event(self, key: Key) -> None:
        """Take an event that is recorded; stop recording after it if all since it came last is known."""
        before, run = self._event, self._end_run()
        segment = before.after.setdefault(key, Segment(self._event_at(key)))
        segment.note(run)
        before.last = run
        sites = set(run.ops[:, 2].tolist())
        if self._lines.are_seen:
            self._lines.watch(sites, sys._getframe(1))
        may_stop = self._recorder.active and not self._given_up and mode_stack.all_are_ours() and self._runs_alone()
        if not segment.is_known or not may_stop:
            self._end_loop()
        elif len(before.key) != _LINE:
            self._known |= self._lines_run | {(_READ_AT, site) for site in sites}
        comes_again = segment.end in self._known_round
        self._begin_event(segment.end)
        self._to_skip -= segment.end is self._skipped_event
        if len(before.key) == _LINE and self._to_skip > 0:  # it is new time and again, and what followed it is known
            self._stop_recording()
        elif comes_again:
            self._begin_skipping(segment.end)
        self._run, self._lines_run = Run(self._recorder, self._loop), set()

    def _end_run(self) -> Run:
        """End the run up to the event that comes now; count its segment's skipped beginning as in an earlier run."""
        self._run.end()
        if self._run_of_skipped_beginning is not None:
            self._ops += self._run_of_skipped_beginning.count(1, self._run.ops)
            self._run_of_skipped_beginning = None
        return self._run

    def _event_at(self, key: Key) -> Event:
        if key not in self._events and len(self._events) >= _MOST_EVENTS:
            self._events.clear()
        return self._events.setdefault(key, Event(key))

    def _begin_event(self, event: Event) -> None:
        """Begin an event after which ops are recorded."""
        self._event = event
        self._known_round.add(event)
        event.repetitions += 1

    def _end_loop(self, *last_event: Event) -> None:
        """After something new, record all until it is known; `last_event` is where the new round begins."""
        if self._skipped_event is not None:
            self._lengths[self._skipped_event.key[1:]] = self._skipped_event.repetitions
            self._loop += 1
            for event in self._events.values():
                event.repetitions = 0
        self._skipped_event, self._known_round, self._skipping_since, self._to_skip = None, {*last_event}, 0, 0

    def _begin_skipping(self, event: Event) -> None:
        """Skip from here as many repetitions of the event as keep the budget, but not the last one of a loop."""
        now = thread_time_ns()
        if event is self._skipped_event and self._skipping_since:
            event.recorded_time = min(event.recorded_time, now - self._skipping_since)
        if isfinite(cost_of_recording := event.recorded_time - event.skipped_time):
            enough = int(cost_of_recording / (self._share * _SHARE_OF_RECORDING * max(event.skipped_time, 1.0))) + 1
            event.batch = max(min(2 * event.batch, enough), FIRST_BATCH)
        left_in_loop = self._lengths.get(event.key[1:], 0) - event.repetitions  # it is mostly as long as before
        if left_in_loop == 0:
            self._known_round = {event}
            return
        self._skipped_event, self._skipping_since = event, now
        self._to_skip = event.batch = left_in_loop if 0 < left_in_loop <= 2 * event.batch else event.batch
        self._stop_recording()

    def _runs_alone(self) -> bool:
        """Return whether no other thread has run an op yet: the threads of a progress bar or a queue never do."""
        other_threads = [state for state in list(self._recorder.states.values()) if state is not self._state]
        return not any(thread.mode is not None and thread.op & NUMBERS for thread in other_threads)

    def _stop_recording(self) -> None:
        self.off = self._state.mode.pause()
        if self.off and not self._lines.are_seen:
            READS.watch(self._at_a_read)

    def _resume_recording(self, event: Event) -> None:
        self.off = self._changed = False
        READS.forget()
        self._state.mode.resume()
        self._count_left_out()
        self._recorder.pack(self._state)
        self._known_round, self._lines_run, self._run = set(), set(), Run(self._recorder, self._loop)
        self._begin_event(event)

    def _give_up(self, fault: Exception) -> None:
        """Record all from here on, after a fault of ours."""
        self._given_up = True
        self._recorder.fault(fault)
        if self.off:
            self._skip_counts.clear()
            self._resume_recording(self._event)

    def _count_left_out(self) -> None:
        self._ops += sum(segment.count(times) for segment, times in self._skip_counts.items())
        self._skip_counts.clear()

    def _add_note(self) -> None:
        note, recorded = self._recorder.note, sum(state.op & NUMBERS for state in self._recorder.threads)
        if self._ops:
            note("note.repetitions", recorded=recorded, ops=self._ops)
            if not self._lines.are_seen:
                note("note.unseen-lines")
        elif recorded > _MANY_OPS:
            note("note.no-loop")
