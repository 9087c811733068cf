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
_CHANGE: Final[Key] = ()
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
        self._ran: set[Key] = set()  # ... of this one
        self._events: dict[Key, Event] = {}
        self._event = Event(())  # the last one
        self._run = Run(recorder, 0)  # what is recorded after it
        self._whole: Run | None = None  # like which the segment is of which only the rest is recorded
        self._round: set[Event] = set()  # events since the last segment that is not known
        self._top: Event | None = None  # whose repetitions are left out; so many are still to come
        self._left = self._since = 0  # and began then, or the recorded one after them; 0 where something else ran too
        self._lengths: dict[Key, int] = {}  # by place: repetitions until the loop there ended
        self._due: Counter[Segment] = Counter()  # how often they were left out
        self._loop = self._ops = 0  # loops that have ended; ops that are counted

    def begin(self, state: ThreadState) -> None:
        self._state, self.ident = state, state.ident
        self._around = {id(each.f_code) for each in outward(sys._getframe(1))}  # what is around it never changes

    def leaves_out(self, module: Any) -> bool:
        if not self._is_between():
            return False
        key = [id(module), attributes(module).get("training") is True]
        frame: Any = sys._getframe(2)
        while frame is not None:  # `outward` takes twice as long, in each call of a module
            code = id(frame.f_code)
            key += (code, frame.f_lasti)
            frame = None if code in self._around else frame.f_back
        self.inside = self.ident if self._reach(tuple(key)) else -1
        return self.off

    def end_call(self) -> None:
        self.inside = -1
        if self._changed:
            self._reach_within(_CHANGE)

    def step(self, optimizer: Any) -> bool:
        return self._reach((id(optimizer),)) if self._is_between() else self.off

    def attach(self, site: int) -> bool:
        return self._is_known((_ATTACHED_AT, site))

    def change(self) -> bool:
        left_out = self._changed = self.off
        if left_out:
            self._reach_within(_CHANGE)
        elif self._whole is None:
            self._end_loop(self._event)
        return left_out

    def stop(self) -> None:
        if self.ident < 0:
            return
        with self._faults:
            if not self.off:
                self._end_run()
            elif self.inside < 0 and (last := self._event.last) is not None:
                self._ops += last.count(1, last.next_round())  # what came after the event has ended
            self._count_left_out()
            self._lines.forget()
            READS.forget()
            self._note()
        self.ident = self.inside = -1

    def _is_between(self) -> bool:
        """Return whether no call of a module, no step and no backward pass is on."""
        return self.inside < 0 and not self._state.opened and not self._state.steps and current_node() is None

    def _reach(self, key: Key) -> bool:
        """Take the next event; return whether it is left out."""
        try:
            segment = self._event.after.get(key)
            if not self.off:
                self._record(key)
            elif segment is not None and segment.is_known and not self._changed:
                self._due[segment] += 1
                event = self._event = segment.end
                if event is self._top:
                    self._pass(event)
            else:
                self._whole, self._since = self._event.last, 0
                if len(key) != _LINE:
                    self._end_loop()
                self._resume(self._event_at(key))
        except Exception as fault:  # noqa: BLE001 (a `with` takes longer than the rest)
            self._give_up(fault)
        return self.off

    def _reach_within(self, key: Key) -> bool:
        """Take something new in the middle of a segment; return whether it is recorded."""
        if self.off and self._is_between():
            self._reach(key)
        return not self.off

    def _is_known(self, line: Key) -> bool:
        """Return whether a line is known, which is about to run; one that is not is recorded."""
        is_known = line in self._known
        if not is_known and get_ident() == self.ident and self._reach_within(line):
            self._ran.add(line)
        return is_known

    def _at_a_read(self, frame: Any) -> None:
        with self._faults:
            self._is_known((_READ_AT, find(frame)))

    def _pass(self, event: Event) -> None:
        """Leave out a further repetition; after the last of those planned, record one."""
        self._left -= 1
        if self._left > 0 and self._is_alone():
            event.repetitions += 1
            return
        now = thread_time_ns()
        if self._since:
            event.plain = min(event.plain, (now - self._since) / (event.batch - self._left))
            self._since = now
        self._resume(event)

    def _record(self, key: Key) -> None:
        """Take an event that is recorded; leave out repetitions from there on if all since its last time is known."""
        before, run = self._event, self._end_run()
        segment = before.after.setdefault(key, Segment(self._event_at(key)))
        segment.note(run)
        before.last = run
        sites = set(run.ops[:, 2].tolist())
        if self._lines.are_seen:
            self._lines.watch(sites, sys._getframe(1))
        is_free = self._recorder.active and not self._given_up and mode_stack.all_are_ours() and self._is_alone()
        if not segment.is_known or not is_free:
            self._end_loop()
        elif len(before.key) != _LINE:
            self._known |= self._ran | {(_READ_AT, site) for site in sites}
        is_round = segment.end in self._round
        self._arrive(segment.end)
        self._left -= segment.end is self._top
        if len(before.key) == _LINE and self._left > 0:  # it is new time and again, and what followed it is known
            self._pause()
        elif is_round:
            self._leave_out(segment.end)
        self._run, self._ran = Run(self._recorder, self._loop), set()

    def _end_run(self) -> Run:
        """End what was recorded of a segment, and count what came before it."""
        self._run.end()
        if self._whole is not None:
            self._ops += self._whole.count(1, self._run.ops)
            self._whole = None
        return self._run

    def _event_at(self, key: Key) -> Event:
        if key not in self._events and len(self._events) >= _MOST_EVENTS:
            self._events.clear()
        return self._events.setdefault(key, Event(key))

    def _arrive(self, event: Event) -> None:
        """Begin an event that is recorded."""
        self._event = event
        self._round.add(event)
        event.repetitions += 1

    def _end_loop(self, *last: Event) -> None:
        """Something is new, after the last event where one is given: all is recorded until it is known."""
        if self._top is not None:
            self._lengths[self._top.key[1:]] = self._top.repetitions
            self._loop += 1
            for event in self._events.values():
                event.repetitions = 0
        self._top, self._round, self._since, self._left = None, {*last}, 0, 0

    def _leave_out(self, event: Event) -> None:
        """Leave out so many repetitions of an event that the budget is kept, but not the last one of a loop."""
        now = thread_time_ns()
        if event is self._top and self._since:
            event.dear = min(event.dear, now - self._since)
        if isfinite(extra := event.dear - event.plain):
            enough = int(extra / (self._share * _SHARE_OF_RECORDING * max(event.plain, 1.0))) + 1
            event.batch = max(min(2 * event.batch, enough), FIRST_BATCH)
        last = self._lengths.get(event.key[1:], 0) - event.repetitions  # it is mostly as long as before
        if last == 0:
            self._round = {event}
            return
        self._top, self._since = event, now
        self._left = event.batch = last if 0 < last <= 2 * event.batch else event.batch
        self._pause()

    def _is_alone(self) -> bool:
        """Return whether no other thread has run an op yet: those of a progress bar or a queue never do."""
        others = [state for state in list(self._recorder.states.values()) if state is not self._state]
        return not any(other.mode is not None and other.op & NUMBERS for other in others)

    def _pause(self) -> None:
        self.off = self._state.mode.pause()
        if self.off and not self._lines.are_seen:
            READS.watch(self._at_a_read)

    def _resume(self, event: Event) -> None:
        self.off = self._changed = False
        READS.forget()
        self._state.mode.resume()
        self._count_left_out()
        self._recorder.pack(self._state)
        self._round, self._ran, self._run = set(), set(), Run(self._recorder, self._loop)
        self._arrive(event)

    def _give_up(self, fault: Exception) -> None:
        """Record all from here on, after a fault of ours."""
        self._given_up = True
        self._recorder.fault(fault)
        if self.off:
            self._due.clear()
            self._resume(self._event)

    def _count_left_out(self) -> None:
        self._ops += sum(segment.count(times) for segment, times in self._due.items())
        self._due.clear()

    def _note(self) -> None:
        note, recorded = self._recorder.note, sum(state.op & NUMBERS for state in self._recorder.threads)
        if self._ops:
            note("note.repetitions", recorded=recorded, ops=self._ops)
            if not self._lines.are_seen:
                note("note.unseen-lines")
        elif recorded > _MANY_OPS:
            note("note.no-loop")
