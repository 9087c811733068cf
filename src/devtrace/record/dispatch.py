"""The dispatch mode: sees every op of a thread before it runs.

`__torch_dispatch__` is the hot path, written out in one function: a call costs 60 ns here, and the whole has 2.5 µs
an op if a small model's training step is to take at most 1.35 times what it takes under a mode that does nothing.
"""

from __future__ import annotations

import sys
import threading
from time import perf_counter_ns as clock
from typing import Any

import torch
from torch._C import _current_autograd_node as current_node
from torch._C._autograd import _get_sequence_nr as sequence_number
from torch.utils._python_dispatch import TorchDispatchMode

from devtrace.record import sites, stamps
from devtrace.record.copies import copied
from devtrace.record.plans import Plan, mask_among, plan_for, plans
from devtrace.record.recorder import Recorder
from devtrace.record.sites import BOUNDARY, USER, files, known
from devtrace.record.state import BACKWARD, COUNT_SHIFT, FULL, GRAD, MASK, NODE_SHIFT, SEVERAL, UNKNOWN, ThreadState

_Tensor = torch.Tensor
_Parameter = torch.nn.Parameter
_NONE: dict[str, Any] = {}
_frame = sys._getframe
_ident = threading.get_ident
_grad = torch.is_grad_enabled
_NO_NUMBER = 1 << 31  # AccumulateGrad has the highest 64-bit number
_NO_TENSOR = frozenset(
    (
        int,
        float,
        bool,
        complex,
        str,
        type(None),
        torch.dtype,
        torch.device,
        torch.layout,
        torch.memory_format,
        torch.Generator,
    )
)


class RecordMode(TorchDispatchMode):
    """One per thread: entering one mode in two threads would share torch's saved state."""

    supports_higher_order_operators = True

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Else a function that torch.compile made runs eager under the mode and stays uncompiled after it."""
        return True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Else the first op imports torch._dynamo (1.2 s) and every op pays 560 ns to be hidden from it."""
        return False

    def __init__(self, recorder: Recorder, state: ThreadState) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch annotates no method of a mode
        self.recorder = recorder
        self.state = state

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        plan = plans.get(id(func)) or plan_for(func)
        recorder = self.recorder
        if plan.silent or not recorder.active:
            return plan.call(*args, **(kwargs or _NONE))
        state = self.state
        try:
            node: Any = current_node()
            if node is None:
                head = plan.head | state.phase
                site = state.fixed
                if site < 0:
                    site = self.site(state)
                sequence = sequence_number()
                if sequence != state.sequence:
                    state.sequence = sequence
                    sequence -= 1
                else:
                    sequence = -1
            else:
                if _ident() != state.ident:
                    state = recorder.native()
                head = plan.head | BACKWARD | recorder.node(node.__class__) << NODE_SHIFT
                site = recorder.backward(state, node)
                sequence = node._sequence_nr()
                if sequence >= _NO_NUMBER:
                    sequence = -1
                state.sequence = sequence_number()
            rows = self.rows(plan, args, kwargs)
            if _grad():
                head |= GRAD
            if plan.masks and mask_among(args):
                head |= MASK
        except Exception as fault:  # noqa: BLE001 (whatever it is, the user's op runs)
            recorder.fault(fault)
            return plan.call(*args, **(kwargs or _NONE))
        start = clock()
        try:
            out = plan.call(*args, **(kwargs or _NONE))
        except BaseException as error:
            self.raised(state, (head, site, start, sequence), rows, error)
            raise
        end = clock()
        try:
            self.done(plan, state, (head, site, start, end, sequence), rows, out, (args, kwargs))
        except Exception as fault:  # noqa: BLE001
            recorder.fault(fault)
        return out

    def site(self, state: ThreadState) -> int:
        frame: Any = _frame(2)
        try:
            while not (kind := files[frame.f_code.co_filename]):
                frame = frame.f_back
        except AttributeError:
            return state.base
        if kind == USER:
            of_code = known.get(id(frame.f_code))
            if of_code is not None:
                found = of_code.get(frame.f_lasti)
                if found is not None:
                    return found
        elif kind == BOUNDARY and state.outers:
            found = state.outers[-1]
            if found != UNKNOWN:
                return found
        return sites.find(frame, state.outside, state.base)

    def rows(self, plan: Plan, args: Any, kwargs: Any) -> list[int]:
        rows: list[int] = []
        if plan.births:
            return rows
        recorder = self.recorder
        epoch = recorder.epoch
        for value in args:
            kind = value.__class__
            if kind is _Tensor or kind is _Parameter:
                try:
                    stamp = value.untyped_storage()._devtrace_stamp
                except (NotImplementedError, RuntimeError):
                    rows.append(recorder.meet(value))
                    continue
                if stamp[0] == epoch and stamp[2] == value.shape:
                    rows.append(stamp[1])
                else:
                    rows.append(recorder.meet(value))
            elif kind not in _NO_TENSOR:
                self.gather(value, rows)
        if kwargs and plan.keywords:
            self.gather(tuple(kwargs.values()), rows)
        return rows

    def gather(self, value: Any, rows: list[int]) -> None:
        """The rows of whatever tensors there are in a value."""
        if isinstance(value, _Tensor):
            try:
                rows.append(self.recorder.meet(value))
            except Exception as fault:  # noqa: BLE001 (a subclass whose .shape raises)
                self.recorder.fault(fault)
        elif isinstance(value, list | tuple):
            for item in value:
                if item.__class__ not in _NO_TENSOR:
                    self.gather(item, rows)
        elif isinstance(value, dict):
            self.gather(tuple(value.values()), rows)

    def done(
        self, plan: Plan, state: ThreadState, op: tuple[int, int, int, int, int], rows: list[int], out: Any, given: Any
    ) -> None:
        """Record an op that came back."""
        head, site, start, end, sequence = op
        number = state.op
        count = len(rows)
        if plan.in_place and rows:
            row, layout = rows[0], -1
            if plan.copies:
                copied(self.recorder, number, given[0], given[1], out)
        elif out.__class__ is _Tensor and not plan.copies:
            row, layout = self.one(out, number, site)
        else:
            source, past = copied(self.recorder, number, given[0], given[1], out) if plan.copies else (-1, None)
            self.outputs(out, number, site, source, past, rows)
            row, layout = -1, len(rows) - count
            head |= SEVERAL
        state.heads += (head | count << COUNT_SHIFT, site, start, end, sequence, row, layout)
        state.flat += rows
        state.op = number + 1
        if len(state.heads) >= FULL:
            state.pack()

    def raised(self, state: ThreadState, op: tuple[int, int, int, int], rows: list[int], error: BaseException) -> None:
        """Record an op that raised: no outputs, and no end."""
        head, site, start, sequence = op
        state.fixed, state.phase = -1, 0
        self.recorder.failed(state.op, error)
        state.heads += (head | SEVERAL | len(rows) << COUNT_SHIFT, site, start, -1, sequence, -1, 0)
        state.flat += rows
        state.op += 1

    def one(self, out: Any, op: int, site: int) -> tuple[int, int]:
        """The row and, if it is new, layout of an op's only output."""
        recorder = self.recorder
        try:
            storage = out.untyped_storage()
        except (NotImplementedError, RuntimeError):
            return recorder.made(out, op, site), -1
        stamp = storage._devtrace_stamp
        shape = out.shape
        if stamp[0] == recorder.epoch:
            return (stamp[1] if stamp[2] == shape else recorder.made(out, op, site)), -1
        entry = recorder.by_shape.get(shape)
        if entry is None or entry[0] is not out.dtype or entry[1] != out.device:
            entry = recorder.layout_entry(out)
        row = next(recorder.rows)
        storage._devtrace_stamp = (recorder.epoch, row, shape, None, site, None)
        return row, entry[2]

    def outputs(self, out: Any, op: int, site: int, source: int, past: stamps.Past | None, rows: list[int]) -> None:
        """Append the rows of an op's outputs."""
        if isinstance(out, _Tensor):
            try:
                rows.append(self.recorder.made(out, op, site, source, past))
            except Exception as fault:  # noqa: BLE001 (a subclass whose .shape raises)
                self.recorder.fault(fault)
        elif isinstance(out, list | tuple):
            for item in out:
                self.outputs(item, op, site, source, past, rows)
