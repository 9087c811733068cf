"""The dispatch mode: sees every op of a thread before it runs.

`__torch_dispatch__` is the hot path, written out in one function, because a call of Python costs 60 to 100 ns. All of
ours must take at most 2.2 us an op. Then a small model's training step takes at most 1.35 times as long as under a mode
that does nothing.
"""

import sys
import threading
from time import perf_counter_ns as clock
from typing import Any

import torch

from devtrace.recording.columns.chunk import COUNT_SHIFT, FULL, GRAD, SEVERAL
from devtrace.recording.columns.operator_info import FIRST_ARGUMENT, NOTHING, ONE, learn_operator, operators
from devtrace.recording.columns.thread_state import (
    ENGINE,
    NO_NUMBER,
    ThreadState,
    current_node,
    current_task,
    frames_to_skip,
    sequence_number,
)
from devtrace.recording.hot.recorder import Recorder
from devtrace.runtime import mode_stack
from devtrace.runtime.mode_stack import BesideCompile, as_tensors
from devtrace.runtime.quiet import ALL_DISABLED, Restored, function_state, set_function_state
from devtrace.runtime.tracebacks import leave

_Tensor = torch.Tensor
_Parameter = torch.nn.Parameter
_NONE: dict[str, Any] = {}
_frame = sys._getframe
_ident = threading.get_ident
_grad = torch.is_grad_enabled
function_modes = torch._C._len_torch_function_stack
_NO_STORAGE = (NotImplementedError, RuntimeError)  # from a sparse tensor, which has none


class RecordMode(BesideCompile):
    """One per thread: entering one mode in two threads would share torch's saved state."""

    supports_higher_order_operators = True

    def __init__(self, recorder: Recorder, state: ThreadState) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch annotates no method of a mode
        self.recorder = recorder
        self.tensor_rows = recorder.rows
        self.state = state
        state.mode = self

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None, shown: Any = None) -> Any:
        operator = operators.get(id(func)) or learn_operator(func)
        recorder, call, direct = self.recorder, operator.call, operator.direct
        if function_modes():  # they would see what we read
            if shown is None:
                return self._dispatch_quietly(func, types, args, kwargs)
            call = direct = Restored(call, shown)
        if operator.silent or not recorder.active:
            if operator.profiler_region:
                self.state.region(operator.profiler_region)
            return call(*args, **(kwargs or _NONE))
        state, tensor_rows, epoch = self.state, self.tensor_rows, self.tensor_rows.epoch
        try:
            node: Any = current_node()
            if node is None:
                try:
                    caller = _frame(1)
                except ValueError:  # on a thread of C++ (torch.jit.fork, what DDP does behind a backward pass)
                    state, caller = recorder.state_of_cpp_thread(), None
                head = operator.head | state.phase
                site = state.fixed if state.fixed >= 0 else state.site_of_op(caller)
                previous, state.sequence = state.sequence, sequence_number()
                sequence = -1 if state.sequence == previous else state.sequence - 1  # -1: autograd made no node
            elif (
                _ident() == state.ident
                and _frame(1).f_code is ENGINE
                and current_task() == state.task
                and (bits := recorder.nodes.get(type(node))) is not None
            ):
                head, site, sequence = operator.head | bits, state.task_site, node._sequence_nr()
                if sequence >= NO_NUMBER:
                    sequence = -1
            else:
                if _ident() != state.ident:
                    state = recorder.state_of_cpp_thread()
                head, site, sequence = state.backward_op(node, operator.head, recorder.nodes)
            if _grad():
                head |= GRAD
            rows: list[int] = []
            try:
                for value in args:
                    kind = type(value)
                    if kind is _Tensor or kind is _Parameter:
                        stamp = value.untyped_storage()._devtrace_stamp
                        row = stamp[1].get(value.shape) if stamp[0] == epoch else None
                        rows.append(tensor_rows.row_for_input(value) if row is None else row)
                    elif kind not in operator.plain:
                        direct = call
                        recorder.append_rows(value, rows)
            except _NO_STORAGE:
                rows.clear()
                direct = call
                recorder.append_rows(args, rows)
            if not rows:
                direct = call
            if operator.special:
                head |= recorder.special(state, operator, args, kwargs, rows)
        except BaseException as fault:  # noqa: BLE001 (whatever it is, the user's op runs)
            recorder.take_back(state.op, fault)
            return call(*args, **(kwargs or _NONE))
        start = clock()
        try:
            out = direct(*args, **kwargs) if kwargs else direct(*args)
        except BaseException as error:
            tensors = as_tensors(error, func, args)
            if tensors is not None:
                return self.__torch_dispatch__(func, types, tensors, kwargs, shown)
            for observer in recorder.observers.values():
                observer.note_error(error)
            recorder.note_error(state, (head, site, start, sequence), rows, error)
            leave(error)
            raise
        end = clock()
        try:
            head |= len(rows) << COUNT_SHIFT
            if operator.result_kind == ONE and type(out) is _Tensor:
                row, layout = tensor_rows.row_for_result(out, state.op, site)
            elif operator.result_kind == FIRST_ARGUMENT and rows:
                row, layout = rows[0], -1
            elif operator.result_kind == NOTHING:
                row, layout = -1, 0
                head |= SEVERAL
            else:
                row, layout = -1, recorder.add_outputs(operator, state.op, site, (args, kwargs), out, rows)
                head |= SEVERAL
            heads = state.heads
            heads += (head, site, start, end, sequence, row, layout)
            state.flat += rows
            state.op += 1
            if len(heads) >= FULL:
                recorder.pack(state)
        except BaseException as fault:  # noqa: BLE001
            recorder.take_back(state.op, fault)
        return out

    def pause(self) -> bool:
        """Record no more of this thread; return False where somebody else took the mode off its stack."""
        recorder, state = self.recorder, self.state
        if mode_stack.take_out(self) is None:
            return False
        self._height = mode_stack.height()
        recorder.gap = state.op if recorder.gap < 0 else recorder.gap
        recorder.leave(state)
        return True

    def resume(self) -> None:
        """Go on where the mode was, below those that were put on since."""
        recorder, state = self.recorder, self.state
        mode_stack.push_under(self, max(mode_stack.height() - self._height, 0))
        state.sequence = sequence_number()
        with recorder.lock:
            recorder.states[state.ident] = state

    def _dispatch_quietly(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Record an op while a TorchFunctionMode is on, which sees what the op does but nothing that we read."""
        torch_state = function_state()
        set_function_state(ALL_DISABLED)
        try:
            return self.__torch_dispatch__(func, types, args, kwargs, torch_state)
        except BaseException as error:
            leave(error)
            raise
        finally:
            set_function_state(torch_state)


frames_to_skip.add(RecordMode._dispatch_quietly.__code__)
