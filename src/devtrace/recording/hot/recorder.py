"""The recorder: state that all threads of one recording share, and everything too rare for the hot path."""

import sys
import threading
from time import perf_counter_ns
from typing import Any

import torch

from devtrace.recording.columns import copies, sites
from devtrace.recording.columns.chunk import COUNT_SHIFT, GRAD_SHIFT, MASK, SEVERAL, WIDTH
from devtrace.recording.columns.operator_info import SYNC, OperatorInfo, mask_among, operator_by_name
from devtrace.recording.columns.process_history import Past
from devtrace.recording.columns.recorded_ops import RecordedOps, Waited, thread_name
from devtrace.recording.columns.tensor_rows import SETTLING
from devtrace.recording.columns.thread_state import THREAD_SHIFT, ThreadState, below_the_mode, current_task
from devtrace.recording.folding import fold as folding
from devtrace.runtime.interrupts import uninterrupted
from devtrace.runtime.observers import Observer
from devtrace.runtime.quiet import Quiet, device_of


class Recorder(RecordedOps, Observer):
    """One recording. `states` holds the ThreadState of each thread that is being followed, by the thread's ident."""

    def __init__(self, max_ops: int) -> None:
        super().__init__()
        self.max_ops = max_ops
        self.folds = 0
        self._limit = max_ops

    def native(self) -> ThreadState:
        """Return the state of a thread that C++ made (autograd's, mostly), which runs the mode of another thread."""
        state = self.states.get(threading.get_ident()) or self.follow(thread_name())
        task = current_task()
        if task != state.pass_of_base:
            state.pass_of_base, state.base = task, self._waiting_at()
        return state

    def _waiting_at(self) -> int:
        """Return the site that waits for the backward pass; NOWHERE if those of several threads differ."""
        frames = sys._current_frames()
        with self.lock:
            followed = [state for state in self.states.values() if state.mode is not None]
        found = {site for state in followed if (site := state.waits_at(frames.get(state.ident))) is not None}
        return found.pop() if len(found) == 1 else sites.NOWHERE

    def special(self, state: ThreadState, operator: OperatorInfo, args: Any, kwargs: Any, rows: list[int]) -> int:
        """Handle tensors among the keyword arguments, and masks; return flags for the head."""
        if operator.creates_from_host:
            rows.clear()
            self.rows.forget_input(args[0])
            if operator.lifts:
                state.lift(below_the_mode(sys._getframe(1).f_back))
                with Quiet():
                    copies.note_lift(self, state.op, args[0])
        elif kwargs and operator.keywords:
            self.gather(kwargs, rows)
        if not operator.may_index_by_mask:
            return 0
        lifted = state.lifted_in(below_the_mode(sys._getframe(1).f_back))
        with Quiet():
            has_mask = bool(lifted) and copies.note_index(self, state, lifted, args, rows)
            return MASK if mask_among(args, lists_are_there=has_mask) else 0

    def add_outputs(
        self, info: OperatorInfo, op: int, site: int, given: tuple[Any, Any], out: Any, rows: list[int]
    ) -> int:
        """Append the rows of an op's outputs; return their number."""
        before = len(rows)
        source: int = -1
        past: Past | None = None
        if info.may_carry:
            with Quiet():
                source, past = copies.note_copy(self, op, *given, out)
        self.gather(out, rows, lambda made: self.rows.row_for_output(made, op, site, source, past))
        return len(rows) - before

    def take_back(self, op: int, fault: BaseException) -> None:
        """Take back the copies that were noted of an op that is not recorded: the next op has its number."""
        with self.lock:
            for at in reversed(range(len(self.copies))):
                if self.copies[at].op == op:
                    del self.copies[at]
                elif self.copies[at].op >> THREAD_SHIFT == op >> THREAD_SHIFT:
                    break
        if not isinstance(fault, Exception):
            raise fault
        self.fault(fault)

    def settle_device(self, tensor: Any) -> None:
        """Correct the device of a tensor that the last ops have made, and of its views: it was not known until now."""
        state = self.states.get(threading.get_ident())
        if state is None or not self.active:
            return
        with Quiet():
            rows, device = self.rows.of_storage(tensor), device_of(tensor)
            self.rows.settle(rows, device)
            heads = state.heads
            for at in range(len(heads) - WIDTH, max(len(heads) - SETTLING * WIDTH, 0) - 1, -WIDTH):
                head, row, layout = heads[at], heads[at + WIDTH - 2], heads[at + WIDTH - 1]
                if row in rows and layout >= 0 and not head & SEVERAL:
                    heads[at + WIDTH - 1] = self.rows.on_device(layout, device)
                    rows.discard(row)
                if not rows:
                    break

    def note_wait(self, state: ThreadState, name: str, site: int, start: int, on: torch.device | torch.Tensor) -> None:
        """Record a call, not an op, that has waited since `start` for a device, or for a tensor's values."""
        rows: list[int] = []
        if isinstance(on, torch.device):
            self.waits.append(Waited(state.op, on))
        else:
            self.gather(on, rows)
        head = operator_by_name(name, SYNC).head | torch.is_grad_enabled() << GRAD_SHIFT | state.phase
        state.heads += (head | SEVERAL | len(rows) << COUNT_SHIFT, site, start, perf_counter_ns(), -1, -1, 0)
        state.flat += rows
        state.op += 1

    def pack(self, state: ThreadState) -> None:
        """Make columns of a thread's full lists, and fold repetitions if there are too many ops."""
        with uninterrupted():
            state.pack()
            if self.kept() > self._limit:
                with self.lock:
                    self._fold(state, self.max_ops // 2)
                    self._limit = max(self.max_ops, self.kept() * 5 // 4)

    def finish(self) -> None:
        """Pack all threads, and fold down to `max_ops`."""
        super().finish()
        for state in sorted(self.threads, key=ThreadState.kept, reverse=True):
            above = self.kept() - self.max_ops
            if above > 0:
                self._fold(state, max(state.kept() - above, 1))

    def _fold(self, state: ThreadState, most: int) -> None:
        others = self.kept() - state.kept()
        folding.fold(self, state, most, max(2 * self.max_ops - others, most))
        self.folds += 1
