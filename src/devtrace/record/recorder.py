"""The recorder: what all threads of one recording share. Fills plain lists and arrays; `assemble.py` makes the trace
of them.
"""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass
from sys import _getframe
from time import perf_counter_ns, time
from typing import Any, Final

import torch

from devtrace.record import sites, stamps
from devtrace.record.state import NODES, ThreadState

Layout = tuple[Any, Any, int]
"""What tensors of one shape look like, as last met: (dtype, device, layout id)."""


@dataclass(frozen=True, slots=True)
class Copied:
    """Data that crossed devices: from a tensor of one layout to one of another."""

    op: int
    source: int
    target: int
    pinned: bool
    non_blocking: bool


@dataclass(frozen=True, slots=True)
class Failed:
    op: int
    type: str
    message: str


class Recorder:
    """One recording. `states` holds a ThreadState for each thread that it follows."""

    def __init__(self, max_ops: int) -> None:
        self.max_ops = max_ops
        self.epoch = stamps.new_epoch()
        self.epochs = {self.epoch}
        self.active = True
        self.recorded = time()
        self.origin = perf_counter_ns()
        self.states: dict[int, ThreadState] = {}
        self.threads: list[ThreadState] = []
        self.rows = itertools.count()
        # Rows that no op's head tells of: (row, layout, producer, source, site) of tensors that were met, or made
        # several at once.
        self.met: list[tuple[int, int, int, int, int]] = []
        self.layouts: list[tuple[Any, Any, Any]] = []  # shape, dtype, device
        self.by_shape: dict[Any, Layout] = {}
        self._by_all: dict[tuple[Any, Any, Any], Layout] = {}
        self.copies: list[Copied] = []
        self.failures: list[Failed] = []
        self.nodes: dict[type, int] = {}
        self.notes: list[str] = []
        self.lock: Final = threading.RLock()

    def follow(self, name: str, base: int = sites.NOWHERE) -> ThreadState:
        """Start recording the current thread."""
        ident = threading.get_ident()
        with self.lock:
            state = ThreadState(len(self.threads), ident, name, base, torch._C._autograd._get_sequence_nr())
            self.threads.append(state)
            self.states[ident] = state
        return state

    def leave(self, state: ThreadState) -> None:
        """The thread ends: another may get its ident."""
        with self.lock:
            if self.states.get(state.ident) is state:
                del self.states[state.ident]

    def native(self) -> ThreadState:
        """The state of a thread that autograd made, in which the mode of the thread that called backward runs too."""
        state = self.states.get(threading.get_ident())
        return state or self.follow(threading.current_thread().name)

    def backward(self, state: ThreadState, node: Any) -> int:
        """The site of an op of the backward pass: where backward was called, but of a Python function's own
        `backward` its line.
        """
        if isinstance(node, torch.autograd.function.BackwardCFunction):
            return sites.find(_getframe(2), state.outside, state.base)
        task = torch._C._current_graph_task_id()
        if task != state.task:
            try:
                state.task_site = sites.find(_getframe(2), state.outside, state.base)
            except ValueError:  # an autograd thread has no Python frame below the op
                state.task_site = max((other.task_site for other in self.threads if other.task == task), default=-1)
            state.task = task
            state.fixed = -1
        return state.task_site

    def node(self, kind: type) -> int:
        """A small number for a class of autograd node."""
        return self.nodes.setdefault(kind, min(len(self.nodes), NODES - 1))

    def meet(self, tensor: Any) -> int:
        """The row of a tensor that is not the last shape seen of its storage, or is new to this recording."""
        with self.lock:
            stamp = stamps.get(tensor)
            if stamp[0] != self.epoch:
                return self._first_sight(tensor, stamp)
            shape = tensor.shape
            if stamp[2] == shape:
                return stamp[1]
            others = stamp[3] if stamp[3] is not None else {}
            row = others.get(shape)
            if row is None:
                row = others[shape] = self.add(self.layout(tensor), -1, stamp[1], stamp[4])
                if stamp[3] is None:
                    stamps.put(tensor, (*stamp[:3], others, *stamp[4:]))
            return row

    def _first_sight(self, tensor: Any, stamp: stamps.Stamp) -> int:
        """A tensor from before: its row, and rows for what it was copied from."""
        layout = self.layout(tensor)
        source = self._past(stamp[5], layout)
        row = self.add(layout, -1, source, stamp[4])
        stamps.put(tensor, (self.epoch, row, tensor.shape, None, stamp[4], stamp[5]))
        return row

    def _past(self, past: stamps.Past | None, layout: int) -> int:
        if past is None:
            return -1
        site, device, earlier = past
        shape, dtype, _ = self.layouts[layout]
        there = self._layout_of(shape, dtype, device)[2]
        return self.add(there, -1, self._past(earlier, layout), site)

    def made(self, tensor: Any, op: int, site: int, source: int = -1, past: stamps.Past | None = None) -> int:
        """The row of one of an op's outputs; `source` and `past` when it is a copy."""
        stamp = stamps.get(tensor)
        if stamp[0] == self.epoch:
            if stamp[2] == tensor.shape or (stamp[3] and tensor.shape in stamp[3]):
                return self.meet(tensor)
            return self._view(tensor, stamp, op)
        row = self.add(self.layout(tensor), op, source, -1)
        stamps.put(tensor, (self.epoch, row, tensor.shape, None, site, past))
        return row

    def _view(self, tensor: Any, stamp: stamps.Stamp, op: int) -> int:
        with self.lock:
            row = self.add(self.layout(tensor), op, stamp[1], -1)
            others = stamp[3] if stamp[3] is not None else {}
            others[tensor.shape] = row
            if stamp[3] is None:
                stamps.put(tensor, (*stamp[:3], others, *stamp[4:]))
        return row

    def add(self, layout: int, producer: int, source: int, site: int) -> int:
        row = next(self.rows)
        self.met.append((row, layout, producer, source, site))
        return row

    def layout(self, tensor: Any) -> int:
        return self._layout_of(tensor.shape, tensor.dtype, tensor.device)[2]

    def layout_entry(self, tensor: Any) -> Layout:
        return self._layout_of(tensor.shape, tensor.dtype, tensor.device)

    def _layout_of(self, shape: Any, dtype: Any, device: Any) -> Layout:
        key = (shape, dtype, device)
        entry = self._by_all.get(key)
        if entry is None:
            with self.lock:
                entry = self._by_all[key] = (dtype, device, len(self.layouts))
                self.layouts.append(key)
        self.by_shape[shape] = entry
        return entry

    def failed(self, op: int, error: BaseException) -> None:
        self.failures.append(Failed(op, type(error).__name__, text_of(error)))

    def fault(self, error: Exception) -> None:
        """A fault of our own, or of a tensor that does not answer: one note, and the program goes on."""
        note = f"{type(error).__name__}: {text_of(error)}"
        if note not in self.notes:
            self.notes.append(note)


def text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as inner:  # noqa: BLE001 (a user's __str__)
        return f"<no text: {type(inner).__name__}>"
