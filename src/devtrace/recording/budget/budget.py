"""Keeps a long recording cheap: what repeats is recorded now and then, and counted in between.

An event is an outermost call of a module, or a step of an optimizer. `phases` tell what each leads to. A module that
is attached or moved, a parameter, a thread, a line that no repetition has: from there on all is recorded.
"""

import sys
from collections.abc import Callable, Hashable
from threading import get_ident
from time import thread_time_ns
from typing import Any, Final

from devtrace.recording.budget.lines import Lines
from devtrace.recording.budget.phases import Counting, Joining, Learning, Phase, Watching
from devtrace.recording.budget.reads import Reads
from devtrace.recording.budget.run import Run
from devtrace.recording.budget.segments import Event, Events
from devtrace.recording.columns.thread_state import ThreadState, current_node
from devtrace.recording.hot.recorder import Recorder
from devtrace.runtime import mode_stack
from devtrace.runtime.watching import Faults

_OWN_FRAMES: Final = 2


class Budget(Run):
    """Takes what is seen of the program to the phase that is on. After a fault of ours, all is recorded."""

    def __init__(self, recorder: Recorder, share: float, clock: Callable[[], int] = thread_time_ns) -> None:
        lines, reads = Lines(self._at_an_unknown_line), Reads(self._at_a_read)
        super().__init__(recorder, share, clock, lines, reads)
        self.phase: Phase = Learning(self)
        self.ended_off = False
        self._events = Events()
        self._faults = Faults(self._give_up)

    def begin(self, state: ThreadState) -> None:
        self.state, self.ident = state, state.ident
        self._events.begin(sys._getframe(1))

    def module_called(self, module: Any) -> None:
        """An outermost call of a module begins, in the frame below this one."""
        with self._faults:
            event = self._events.of_call(module, sys._getframe(_OWN_FRAMES))
            self._step(event, in_region=False)

    def call_ended(self) -> None:
        """An outermost call that was not recorded has ended."""
        if not isinstance(self.phase, Counting):
            self.skipped = -1
            if self.changed_inside:
                self.changed_inside = False
                self.changed()

    def stepping(self, optimizer: Any, *, closure: bool) -> bool:
        """Take an optimizer's step for an event; return whether it is not recorded."""
        ident = get_ident()
        if ident != self.ident:
            return False
        if ident == self.skipped:
            self.calls = self.calls - 1 or 1  # Counting ends with a module's call, the next one
            return True
        if self.state.opened or self.state.steps:
            return self.off
        with self._faults:
            if closure:
                self.given_up = True  # the closure calls modules within the step
            self._step((id(optimizer), closure), in_region=True)
        return self.off

    def attaching(self, site: int) -> bool:
        """A module is attached; return whether that is not recorded, as each repetition does it: a slice of layers."""
        if get_ident() != self.ident:
            return False
        if isinstance(self.phase, Watching):
            return self.phase.attaches(site)
        self.segments.attach(site)
        return False

    def changed(self) -> bool:
        """Something happens that no repetition has; return whether it was not recorded what came before it."""
        if get_ident() != self.ident or not isinstance(phase := self.phase, Watching):
            return False
        with self._faults:
            phase.find_position()
            if phase.is_inside() or current_node() is not None:
                self.changed_inside = True
                if isinstance(phase, Counting):
                    phase.end_with_next_call()
            else:
                phase.end_loop()
                self.phase = phase.record_from_here()
        return True

    def _at_an_unknown_line(self, line: Hashable) -> None:
        """Record a line that no repetition had, before it runs."""
        if get_ident() != self.ident or not isinstance(phase := self.phase, Watching):
            return
        with self._faults:
            if not phase.is_inside() and current_node() is None:
                phase.find_position()
                self.phase = phase.record_from_here(line)

    def _at_a_read(self, frame: Any) -> bool:
        """Record a value that is read where no repetition reads one; return whether it is recorded."""
        with self._faults:
            if get_ident() != self.ident or not isinstance(phase := self.phase, Watching) or phase.is_inside():
                return False
            site = self.state.where(frame)
            if site in phase.loop.sites:
                return False
            if mode_stack.all_are_ours():
                self._at_an_unknown_line(site)
        return not self.off

    def stop(self) -> None:
        """End the recording."""
        with self._faults:
            phase, self.phase = self.phase, Learning(self)
            if isinstance(phase, Watching):
                self.ended_off = True
                phase.find_position()
                phase.stop()
                self.follow_again()
            elif isinstance(phase, Joining):
                phase.add_what_came_before(goes_on=False)
            self.lines.forget()
            self.reads.forget()
            self.note()

    def apply(self, state: ThreadState) -> None:
        """All ops of a thread are packed, and may be folded next: give them what was counted."""
        self.counted.apply(state)

    def _step(self, event: Event, *, in_region: bool) -> None:
        self.events += 1
        if not self.off:
            self.first_ops.note(event, self.state)
        self.phase = self.phase.step(event, in_region)

    def _give_up(self, fault: Exception) -> None:
        """Record all from here on."""
        self.given_up = True
        self.recorder.fault(fault)
        self.phase = Learning(self)
        if self.off:
            self.put_back(in_region=False)
