"""What all phases of a recording with a budget share: the loops, what was counted, and the mode that they take off."""

from collections.abc import Callable
from typing import Final

from devtrace.recording.budget.counted import Counted
from devtrace.recording.budget.lines import Lines
from devtrace.recording.budget.loop import Lengths, Loop
from devtrace.recording.budget.reads import Reads
from devtrace.recording.budget.segments import FirstOps, Segments
from devtrace.recording.columns.thread_state import NUMBERS, ThreadState, current_node, sequence_number
from devtrace.recording.hot.recorder import Recorder
from devtrace.runtime import mode_stack

NEEDED: Final = 6
"""So many equal repetitions make a loop. The rules on copies ask for five."""
AT_ANY_RATE: Final = 200_000_000
"""Nanoseconds that no budget covers: what is learned of a program's first steps."""
MANY: Final = 0.25
"""Of the repetitions that were left out: those that were only counted are then worth a note."""
MANY_OPS: Final = 50_000
"""Ops whose recording takes longer than that."""


class Run:
    """Follows the thread that began the recording. `off`: nothing is recorded of it now."""

    state: ThreadState

    def __init__(self, recorder: Recorder, share: float, clock: Callable[[], int], lines: Lines, reads: Reads) -> None:
        self.recorder, self.share, self.clock = recorder, share, clock
        self.lines, self.reads = lines, reads
        self.off = False
        self.ident = -1
        self.skipped = -1  # the thread's ident in an outermost call that is not recorded, and in all of Counting
        self.calls = 0  # goes down with each call of a module, and each step, that is skipped
        self.events = 0  # so far
        self.segments = Segments(recorder)
        self.first_ops = FirstOps(recorder)
        self.counted = Counted(recorder)
        self.lengths = Lengths()
        self.loops: dict[tuple[int, ...], Loop] = {}
        self.needed = NEEDED
        self.given_up = False
        self.changed_inside = False
        self._height = self._regions = 0

    def may_take_off(self) -> bool:
        state = self.state
        return (
            self.recorder.active
            and not (self.given_up or state.opened or state.steps)
            and current_node() is None
            and mode_stack.all_are_ours()
            and self.is_alone()
        )

    def is_alone(self) -> bool:
        """Return whether no other thread has run an op yet: those of a progress bar or a queue never do."""
        others = [state for state in list(self.recorder.states.values()) if state is not self.state]
        return not any(other.mode is not None and other.op & NUMBERS for other in others)

    def take_off(self, in_region: bool) -> bool:
        """Take the mode off its stack; return False where it is not there: somebody else took it off."""
        state = self.state
        if mode_stack.take_out(state.mode) is None:
            self.given_up = True
            return False
        self._height = mode_stack.height()
        self._regions = state.regions - in_region
        with self.recorder.lock:
            self.recorder.states.pop(self.ident, None)
        self.off = True
        self.lines.watch()
        return True

    def put_back(self, in_region: bool) -> None:
        """Put the mode back where it was."""
        self.follow_again()
        mode_stack.push_under(self.state.mode, max(mode_stack.height() - self._height, 0))
        self.state.number = sequence_number()
        self.state.regions = self._regions + in_region

    def follow_again(self) -> None:
        self.lines.rest()
        self.reads.forget()
        self.off, self.skipped = False, -1
        with self.recorder.lock:
            self.recorder.states[self.ident] = self.state

    def note(self) -> None:
        """Note what was counted, and by how much the budget was exceeded."""
        note, loops = self.recorder.note, self.loops.values()
        if not self.counted.ops:
            if sum(state.op & NUMBERS for state in self.recorder.threads) > MANY_OPS:
                note("note.no-loop")
            return
        recorded, left_out = sum(loop.recorded for loop in loops), sum(loop.left_out for loop in loops)
        note("note.repetitions", recorded=recorded, count=recorded + left_out, ops=self.counted.ops)
        if not self.lines.are_seen:
            note("note.unseen-lines")
        only_counted = sum(loop.counted.repetitions for loop in loops)
        if only_counted > MANY * left_out:
            note("note.only-counted", count=only_counted)
        plain, extra = (sum(column) for column in zip(*(loop.times() for loop in loops), strict=True))
        if extra > self.share * plain + AT_ANY_RATE:
            note("note.over-budget", percent=round(100 * extra / plain), budget=round(100 * self.share))
