"""The recorder: state that all threads of one recording share, and everything too rare for the hot path."""

import json
import sys
import threading
from collections.abc import Callable
from time import perf_counter_ns, time
from typing import Any, Final, Protocol

import torch

from devtrace.recording.columns import copies, sites
from devtrace.recording.columns.chunk import COUNT_SHIFT, GRAD_SHIFT, MASK, SEVERAL, WIDTH
from devtrace.recording.columns.operator_info import SYNC, OperatorInfo, mask_among, operator_by_name
from devtrace.recording.columns.process_history import Past
from devtrace.recording.columns.recorded_ops import Failed, RecordedOps, Waited
from devtrace.recording.columns.tensor_rows import SETTLING
from devtrace.recording.columns.thread_state import ThreadState, below_the_mode, current_task
from devtrace.recording.folding import fold as folding
from devtrace.recording.memory import shortages
from devtrace.runtime.interrupts import uninterrupted
from devtrace.runtime.quiet import PLAIN, Quiet, device_of, function_modes, is_tensor
from devtrace.runtime.tracebacks import text_of
from devtrace.source.safe_values import instance_dict

MOST_NOTES: Final = 8
"""Of one key: faults whose texts all differ are told by their number."""


class Budget(Protocol):
    """`budget.budget`, as far as those below it know it."""

    off: bool
    state: ThreadState

    def module_called(self, module: Any) -> None: ...

    def call_ended(self) -> None: ...

    def stepping(self, optimizer: Any, *, closure: bool) -> bool: ...

    def attaching(self, site: int) -> bool: ...

    def changed(self) -> bool: ...

    def apply(self, state: ThreadState) -> None: ...


class Recorder(RecordedOps):
    """One recording. `states` holds the ThreadState of each thread that is being followed, by the thread's ident."""

    def __init__(self, max_ops: int) -> None:
        super().__init__()
        self.max_ops = max_ops
        self.active = False
        self.first_tick = 0  # happenings with a lower one were before this recording
        self.rank = -1  # of this process in its job
        self.recorded = time()
        self.origin = perf_counter_ns()
        self.states: dict[int, ThreadState] = {}
        self._notes: dict[str, str] = {}  # text -> its key
        self._left_out = 0  # notes of a key that has many
        self.shortage: shortages.Noted | None = None  # the last allocation that failed
        self.folds = 0
        self.budget: Budget | None = None
        self.gap = -1  # the first op after some that were not recorded
        # Rows of parameters and buffers that were registered after such a gap, which may have made them: the next op,
        # and whether a layer of torch's made them as it was built.
        self.late: dict[int, tuple[int, bool]] = {}
        self._limit = max_ops
        self.lock: Final = threading.RLock()

    def follow(self, name: str, base: int = sites.NOWHERE, parent: int = -1) -> ThreadState:
        """Start recording the current thread."""
        ident = threading.get_ident()
        with self.lock:
            state = ThreadState(len(self.threads), ident, name, base, parent)
            self.threads.append(state)
            self.states[ident] = state
        return state

    def leave(self, state: ThreadState) -> None:
        """End a thread: another may get its ident."""
        with self.lock:
            if self.states.get(state.ident) is state:
                del self.states[state.ident]

    def native(self) -> ThreadState:
        """Return the state of a thread that autograd made, which runs the mode of the thread that called backward."""
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

    def gather(self, value: Any, rows: list[int], row_of: Callable[[Any], int] | None = None) -> None:
        """Append the rows of all tensors in an argument, or in an output, which has another way to its row."""
        if type(value) in PLAIN and not function_modes():
            rows.append((row_of or self.rows.row_for_input)(value))
        elif is_tensor(value):
            try:
                with Quiet():
                    rows.append((row_of or self.rows.row_for_input)(value))
            except Exception as fault:  # noqa: BLE001 (a subclass that does not answer)
                self.fault(fault)
        elif isinstance(value, list | tuple):
            for item in value:
                self.gather(item, rows, row_of)
        elif isinstance(value, dict):
            for item in value.values():
                self.gather(item, rows, row_of)

    def special(self, state: ThreadState, operator: OperatorInfo, args: Any, kwargs: Any, rows: list[int]) -> int:
        """Handle tensors among the keyword arguments, and masks; return flags for the head."""
        if operator.creates_from_host:
            rows.clear()
            self.rows.forget_input(args[0])
            if operator.lifts:
                state.lift(below_the_mode(sys._getframe(1).f_back))
                with Quiet():
                    copies.lifted(self, state.op, args[0])
        elif kwargs and operator.keywords:
            self.gather(kwargs, rows)
        if not operator.may_index_by_mask:
            return 0
        lifted = state.lifted_in(below_the_mode(sys._getframe(1).f_back))
        with Quiet():
            has_mask = bool(lifted) and copies.listed(self, state, lifted, args, rows)
            return MASK if mask_among(args, lists_are_there=has_mask) else 0

    def outputs(self, info: OperatorInfo, op: int, site: int, given: tuple[Any, Any], out: Any, rows: list[int]) -> int:
        """Append the rows of an op's outputs; return their number."""
        before = len(rows)
        source: int = -1
        past: Past | None = None
        if info.may_carry:
            with Quiet():
                source, past = copies.copied(self, op, *given, out)
        self.gather(out, rows, lambda made: self.rows.row_for_output(made, op, site, source, past))
        return len(rows) - before

    def raised(self, state: ThreadState, op: tuple[int, int, int, int], rows: list[int], error: BaseException,
               *, is_running: bool = True) -> None:  # fmt: skip
        """Record an op that raised: no outputs, and no end."""
        head, site, start, number = op
        if is_running and isinstance(error, torch.OutOfMemoryError):
            shortages.note_raised(self, error)
        around = [] if state is self.threads[0] else sites.stack(sys._getframe(1))
        self.failures.append(Failed(state.op, type(error).__name__, text_of(error), around))
        state.heads += (head | SEVERAL | len(rows) << COUNT_SHIFT, site, start, -1, number, -1, 0)
        state.flat += rows
        state.op += 1

    def refused(self, state: ThreadState, name: str, site: int, rows: list[int], error: BaseException) -> None:
        """Record a call that torch refused before there was an op."""
        head = operator_by_name(name).head | (torch.is_grad_enabled() << GRAD_SHIFT)
        self.raised(state, (head, site, perf_counter_ns(), -1), rows, error, is_running=False)

    def settled(self, tensor: Any) -> None:
        """Correct the device of a tensor that the last ops have made, and of its views: it was not known until now."""
        state = self.states.get(threading.get_ident())
        if state is None or not self.active:
            return
        with Quiet():
            rows, device = self.rows.of_storage(tensor), device_of(tensor)
            self.rows.correct(rows, device)
            heads = state.heads
            for at in range(len(heads) - WIDTH, max(len(heads) - SETTLING * WIDTH, 0) - 1, -WIDTH):
                head, row, layout = heads[at], heads[at + WIDTH - 2], heads[at + WIDTH - 1]
                if row in rows and layout >= 0 and not head & SEVERAL:
                    heads[at + WIDTH - 1] = self.rows.on_device(layout, device)
                    rows.discard(row)
                if not rows:
                    break

    def waited(self, state: ThreadState, name: str, site: int, start: int, what: torch.device | torch.Tensor) -> None:
        """Record a call, not an op, that has waited since `start` for a device, or for a tensor's values."""
        rows: list[int] = []
        if isinstance(what, torch.device):
            self.waits.append(Waited(state.op, what))
        else:
            self.gather(what, rows)
        head = operator_by_name(name, SYNC).head | torch.is_grad_enabled() << GRAD_SHIFT | state.phase
        state.heads += (head | SEVERAL | len(rows) << COUNT_SHIFT, site, start, perf_counter_ns(), -1, -1, 0)
        state.flat += rows
        state.op += 1

    def pack(self, state: ThreadState) -> None:
        """Make columns of a thread's full lists, and fold repetitions if there are too many ops."""
        with uninterrupted():
            state.pack()
            if self.budget is not None:
                self.budget.apply(state)
            if self.kept() > self._limit:
                with self.lock:
                    self._fold(state, self.max_ops // 2)
                    self._limit = max(self.max_ops, self.kept() * 5 // 4)

    def finish(self) -> None:
        """Pack all threads, and fold down to `max_ops`."""
        for state in self.threads:
            state.pack()
            if self.budget is not None:
                self.budget.apply(state)
        for state in sorted(self.threads, key=ThreadState.kept, reverse=True):
            above = self.kept() - self.max_ops
            if above > 0:
                self._fold(state, max(state.kept() - above, 1))

    def _fold(self, state: ThreadState, most: int) -> None:
        others = self.kept() - state.kept()
        folding.fold(self, state, most, max(2 * self.max_ops - others, most))
        self.folds += 1

    def kept(self) -> int:
        return sum(state.kept() for state in self.threads)

    def fault(self, error: Exception) -> None:
        """Note a fault of our own, or a tensor that does not answer: the program goes on."""
        self.note("note.op-in-part", error)

    def note(self, key: str, about: BaseException | str = "", **counts: int) -> None:
        """Keep the key of a sentence and, behind a tab, what it is about; words are found later."""
        fault = about if isinstance(about, str) else f"{type(about).__name__}: {text_of(about)}"
        values = {**counts, **({"fault": fault} if fault else {})}
        text = f"{key}\t{json.dumps(values)}" if values else key
        if text in self._notes:
            return
        if list(self._notes.values()).count(key) < MOST_NOTES:
            self._notes[text] = key
        else:
            self._left_out += 1

    def noted(self) -> list[str]:
        """Return all notes; of each key the first ones, and the number of those left out."""
        return [*self._notes, *([f'note.more\t{{"count": {self._left_out}}}'] if self._left_out else [])]


def thread_name() -> str:
    """Name the current thread as Python knows it. To ask for the thread itself would make one for autograd's."""
    found = vars(threading)["_active"].get(threading.get_ident())
    name = instance_dict(found).get("_name")
    return name if type(name) is str else "autograd"
