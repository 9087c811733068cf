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

    def state_of_cpp_thread(self) -> ThreadState:
        """Return the state of a thread that C++ made (autograd's, mostly), which runs the mode of another thread."""
        state = self.states.get(threading.get_ident()) or self.follow(thread_name())
        task = current_task()
        if task != state.pass_of_base:
            state.pass_of_base, state.base = task, self._site_of_waiting_thread()
        return state

    def _site_of_waiting_thread(self) -> int:
        """Return the site that waits for the backward pass; NOWHERE if those of several threads differ."""
        frames = sys._current_frames()
        with self.lock:
            states = [state for state in self.states.values() if state.mode is not None]
        waiting = {site for state in states if (site := state.site_of_backward(frames.get(state.ident))) is not None}
        return waiting.pop() if len(waiting) == 1 else sites.NOWHERE

    def special(self, state: ThreadState, operator: OperatorInfo, args: Any, kwargs: Any, rows: list[int]) -> int:
        """Note what only some operators take: a list of Python's, keyword tensors, masks. Return flags for the head."""
        if operator.creates_from_host:
            rows.clear()
            self.rows.forget_input(args[0])
            if operator.lifts:
                state.expect_lift(below_the_mode(sys._getframe(1).f_back))
                with Quiet():
                    copies.note_lift(self, state.op, args[0])
        elif kwargs and operator.keywords:
            self.append_rows(kwargs, rows)
        if not operator.may_index_by_mask:
            return 0
        lifting_ops = state.lifted_in(below_the_mode(sys._getframe(1).f_back))
        with Quiet():
            has_mask = bool(lifting_ops) and copies.note_index(self, state, lifting_ops, args, rows)
            return MASK if mask_among(args, lists_are_on_device=has_mask) else 0

    def add_outputs(
        self, info: OperatorInfo, op: int, site: int, arguments: tuple[Any, Any], out: Any, rows: list[int]
    ) -> int:
        """Append the rows of an op's outputs; return their number."""
        input_count = len(rows)
        source: int = -1
        past: Past | None = None
        if info.may_carry:
            with Quiet():
                source, past = copies.note_copy(self, op, *arguments, out)
        self.append_rows(out, rows, lambda output: self.rows.row_for_output(output, op, site, source, past))
        return len(rows) - input_count

    def take_back(self, op: int, fault: BaseException) -> None:
        """Take back the copies that were noted of an op that is not recorded: the next op has its number."""
        with self.lock:
            for index in reversed(range(len(self.copies))):
                if self.copies[index].op == op:
                    del self.copies[index]
                elif self.copies[index].op >> THREAD_SHIFT == op >> THREAD_SHIFT:
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
            for begin in range(len(heads) - WIDTH, max(len(heads) - SETTLING * WIDTH, 0) - 1, -WIDTH):
                head, row, layout = heads[begin], heads[begin + WIDTH - 2], heads[begin + WIDTH - 1]
                if row in rows and layout >= 0 and not head & SEVERAL:
                    heads[begin + WIDTH - 1] = self.rows.on_device(layout, device)
                    rows.discard(row)
                if not rows:
                    break

    def note_wait(self, state: ThreadState, name: str, site: int, start: int, on: torch.device | torch.Tensor) -> None:
        """Record a call, not an op, that has waited since `start` for a device, or for a tensor's values."""
        rows: list[int] = []
        if isinstance(on, torch.device):
            self.waits.append(Waited(state.op, on))
        else:
            self.append_rows(on, rows)
        head = operator_by_name(name, SYNC).head | torch.is_grad_enabled() << GRAD_SHIFT | state.phase
        state.heads += (head | SEVERAL | len(rows) << COUNT_SHIFT, site, start, perf_counter_ns(), -1, -1, 0)
        state.flat += rows
        state.op += 1

    def pack(self, state: ThreadState) -> None:
        """Make columns of a thread's full lists, and fold repetitions if there are too many ops."""
        with uninterrupted():
            state.pack()
            if self.kept_count() > self._limit:
                with self.lock:
                    self._fold(state, self.max_ops // 2)
                    self._limit = max(self.max_ops, self.kept_count() * 5 // 4)

    def finish(self) -> None:
        """Pack all threads, and fold down to `max_ops`."""
        super().finish()
        for state in sorted(self.threads, key=ThreadState.kept_count, reverse=True):
            surplus = self.kept_count() - self.max_ops
            if surplus > 0:
                self._fold(state, max(state.kept_count() - surplus, 1))

    def _fold(self, state: ThreadState, most: int) -> None:
        others_count = self.kept_count() - state.kept_count()
        folding.fold(self, state, most, max(2 * self.max_ops - others_count, most))
        self.folds += 1
