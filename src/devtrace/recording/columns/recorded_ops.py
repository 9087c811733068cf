"""The ops of one recording: `Recorder` adds to them, folding shortens them, the trace is made of them."""

import json
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter_ns, time
from typing import Any, Final, Protocol

import torch

from devtrace.recording.columns import sites
from devtrace.recording.columns.chunk import COUNT_SHIFT, GRAD_SHIFT, SEVERAL
from devtrace.recording.columns.operator_info import operator_by_name
from devtrace.recording.columns.tensor_rows import Rows
from devtrace.recording.columns.thread_state import THREAD_SHIFT, ThreadState, current_node, current_task
from devtrace.runtime.quiet import PLAIN, Quiet, function_modes, is_tensor
from devtrace.runtime.tracebacks import chain_of, text_of
from devtrace.runtime.watching import Faults
from devtrace.source.safe_values import instance_dict

MOST_NOTES: Final = 8
"""Of one key: faults whose texts all differ are told by their number."""


@dataclass(slots=True)
class Copied:
    """Data that crossed devices: from a tensor of one layout (`source`) to one of another (`target`).

    `row` is that of the tensor itself, -1 for a list of Python's. `times` counts this copy and those folded into it,
    `more` the bytes of the folded ones.
    """

    op: int
    row: int
    source: int
    target: int
    pinned: bool
    non_blocking: bool
    times: int = 1
    more: int = 0


@dataclass(frozen=True, slots=True)
class Failed:
    """An op that raised."""

    op: int
    type: str
    message: str
    around: list[int]  # in a thread, whose frames are gone when its error is raised again: its sites, innermost first


@dataclass(frozen=True, slots=True)
class Waited:
    """A wait for a device that names no tensor of it: `torch.accelerator.synchronize()`."""

    op: int
    device: torch.device


class Sampler(Protocol):
    """Decides which steps of a program are recorded, in the thread that began the recording.

    `off`: nothing of that thread is recorded now. `ident` is that thread's; `inside` is it too in an outermost call of
    a module that is left out, else -1.
    """

    off: bool
    ident: int
    inside: int

    def begin(self, state: ThreadState) -> None:
        """Begin with the thread's recording."""

    def leaves_out(self, module: Any) -> bool:
        """Return whether a module's call is left out; the calling frame begins the call, and `end_call` ends it."""

    def end_call(self) -> None: ...

    def step(self, optimizer: Any) -> bool:
        """An optimizer's step begins; return whether that step is left out."""

    def attach(self, site: int) -> bool:
        """A module is attached; return whether that is nothing new."""

    def change(self) -> bool:
        """A module moves, or a thread or the like is new; return whether what came before it was left out."""

    def stop(self) -> None:
        """End with the recording; a second call does nothing."""


class RecordedOps:
    """Ops of all threads, and the rows of their tensors.

    `states` holds the ThreadState of each thread that is being followed, by the thread's ident.
    """

    def __init__(self) -> None:
        self.threads: list[ThreadState] = []
        self.states: dict[int, ThreadState] = {}
        self.rows = Rows()
        self.copies: list[Copied] = []
        self.failures: list[Failed] = []
        self.waits: list[Waited] = []
        self.nodes: dict[type, int] = {}
        self.first_tick = 0  # happenings with a lower one were before this recording
        self.rank = -1  # of this process in its job
        self.recorded = time()
        self.origin = perf_counter_ns()
        self._notes: dict[str, str] = {}  # text -> its key
        self._left_out = 0  # notes of a key that has many
        self.observers: dict[str, Any] = {}  # `finish.observer.Observer`, by the part of torch that each needs
        self.active = False
        self.sampler: Sampler | None = None
        self.gap = -1  # the first op after some that were not recorded
        # Rows of parameters and buffers that were registered after such a gap, which may have made them: the next op,
        # and whether a layer of torch's made them as it was built.
        self.late: dict[int, tuple[int, bool]] = {}
        self.lock: Final = threading.RLock()
        self.faults = Faults(self.fault)

    def sampler_here(self) -> Sampler | None:
        """Return the sampler if it decides about the current thread, else None."""
        sampler = self.sampler
        return sampler if sampler is not None and sampler.ident == threading.get_ident() else None

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

    def append_rows(self, value: Any, rows: list[int], row_of: Callable[[Any], int] | None = None) -> None:
        """Append the row of each tensor in `[x, (y, z)]` to `rows`; `row_of` is another way to find it, for outputs."""
        if type(value) in PLAIN and not function_modes():  # cheaper than Quiet
            rows.append((row_of or self.rows.row_for_input)(value))
        elif is_tensor(value):
            with self.faults, Quiet():  # a subclass may not answer
                rows.append((row_of or self.rows.row_for_input)(value))
        elif isinstance(value, list | tuple):
            for item in value:
                self.append_rows(item, rows, row_of)
        elif isinstance(value, dict):
            for item in value.values():
                self.append_rows(item, rows, row_of)

    def note_error(self, state: ThreadState, fields: tuple[int, ...], rows: list[int], error: BaseException) -> None:
        """Record an op that raised: no outputs, and no end."""
        head, site, start, number = fields
        around = [] if state is self.threads[0] else sites.stack(sys._getframe(1))
        self.failures.append(Failed(state.op, type(error).__name__, text_of(error), around))
        state.heads += (head | SEVERAL | len(rows) << COUNT_SHIFT, site, start, -1, number, -1, 0)
        state.flat += rows
        state.op += 1

    def handled_failures(self, ended_by: BaseException | None) -> Iterator[int]:
        """Yield the ops of the main thread whose errors the program handled: `ended_by` does not come from them."""
        texts = [text_of(error) for error in chain_of(ended_by)]
        for failed in self.failures:
            if not failed.op >> THREAD_SHIFT and not any(failed.message in text for text in texts):
                yield failed.op

    def note_refusal(self, state: ThreadState, name: str, site: int, rows: list[int], error: BaseException) -> None:
        """Record a call that torch refused before there was an op."""
        head = operator_by_name(name).head | (torch.is_grad_enabled() << GRAD_SHIFT)
        self.note_error(state, (head, site, perf_counter_ns(), -1), rows, error)

    def finish(self) -> None:
        """Pack all threads."""
        for state in self.threads:
            state.pack()

    def kept_count(self) -> int:
        return sum(state.kept_count() for state in self.threads)

    def fault(self, error: Exception) -> None:
        """Note a fault of our own, or a tensor that does not answer: the program goes on."""
        self.note("note.op-in-part", error)

    def note(self, key: str, about: BaseException | str = "", **counts: int) -> None:
        """Keep the key of a sentence and, behind a tab, what it is about; words are found later."""
        text_about = about if isinstance(about, str) else f"{type(about).__name__}: {text_of(about)}"
        values = {**counts, **({"fault": text_about} if text_about else {})}
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
    """Name the current thread as Python knows it. To ask for the thread itself would make one for a thread of C++."""
    thread = vars(threading)["_active"].get(threading.get_ident())
    name = instance_dict(thread).get("_name")
    if type(name) is str:
        return name
    return "torch" if current_node() is None and current_task() < 0 else "autograd"
