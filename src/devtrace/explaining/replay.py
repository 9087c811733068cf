"""Puts ops that were read, and the one that failed, into a recorder, inside the module calls that were open."""

import sys
from itertools import groupby
from time import perf_counter_ns
from types import FrameType
from typing import Any

import torch

from devtrace.explaining.reading.failed_op import UNKNOWN, FailedOp
from devtrace.explaining.reading.pasts import AFTER_ALL, BEFORE_ALL
from devtrace.explaining.reading.values import ReadOp
from devtrace.explaining.stack import CALLS_OF_MODULES, Stack
from devtrace.recording.columns import sites
from devtrace.recording.columns.chunk import COUNT_SHIFT, GRAD_SHIFT
from devtrace.recording.columns.operator_info import operator_by_name
from devtrace.recording.columns.thread_state import NUMBERS, ThreadState
from devtrace.recording.context.module_tree import is_module, is_training
from devtrace.recording.context.modules import Modules
from devtrace.recording.hot.recorder import Recorder


def replay(
    recorder: Recorder, state: ThreadState, modules: Modules, stack: Stack, ops: list[ReadOp], failed: FailedOp | None
) -> int:
    """Record the ops, and open the calls that the failed one was in. Return its site."""
    ops = [op for op in ops if op.is_seen or op.is_believed]
    for op in sorted((op for op in ops if op.depth == BEFORE_ALL), key=lambda op: op.tick):
        _put_in_call(recorder, state, modules, [op], sys._getframe())
    last = failed.depth if failed is not None else len(stack.levels) - 1
    for depth, level in enumerate(stack.levels[: last + 1]):
        module = called_module(level.frame)
        if module is not None:
            row = _row(modules, module)
            modules.known[row].ran = True
            state.open(row, level.frame.f_back or level.frame, training=is_training(module), plain=False)
        here = [op for op in ops if op.depth == depth]
        for _, group in groupby(here, key=lambda op: id(op.module)):
            _put_in_call(recorder, state, modules, list(group), level.frame)
    return _site(stack, last)


def fail(recorder: Recorder, state: ThreadState, site: int, failed: FailedOp | None, error: BaseException) -> None:
    name = failed.name if failed is not None else UNKNOWN
    recorder.refused(state, name, site, [each.row for each in failed.inputs] if failed is not None else [], error)


def put_after(recorder: Recorder, state: ThreadState, ops: list[ReadOp]) -> None:
    """Record the moves of those who handled the error: a trainer that clears up."""
    for op in sorted((op for op in ops if op.depth == AFTER_ALL), key=lambda op: op.tick):
        _put(op, recorder, state, perf_counter_ns())


def called_module(frame: FrameType) -> Any:
    """Return the module whose call a frame of torch's is; None for any other frame."""
    module = frame.f_locals.get("self") if frame.f_code is CALLS_OF_MODULES[0] else None
    return module if is_module(module) else None


def _put_in_call(recorder: Recorder, state: ThreadState, modules: Modules, ops: list[ReadOp], frame: FrameType) -> None:
    module = ops[0].module
    before = None
    if module is not None:
        before = state.open(_row(modules, module), frame, training=is_training(module), plain=False)
    for op in ops:
        _put(op, recorder, state, recorder.origin + (state.op & NUMBERS))
    if before is not None:
        state.close(before)


def _put(op: ReadOp, recorder: Recorder, state: ThreadState, at: int) -> None:
    operator = operator_by_name(op.name)
    operator.kind = op.kind
    head = operator.head | (torch.is_grad_enabled() << GRAD_SHIFT) | len(op.inputs) << COUNT_SHIFT
    state.heads += (head, op.site, at, at + 1, -1, op.row, op.layout)
    state.flat += op.inputs
    state.op += 1


def _row(modules: Modules, module: Any) -> int:
    if modules.row_of(module) < 0:
        modules.take(module, sites.NOWHERE)
    return modules.row_of(module)


def _site(stack: Stack, depth: int) -> int:
    """Return the site of the innermost frame that is neither torch's nor Python's, at a level of the stack."""
    return next((site for site, _ in Stack(stack.levels[: depth + 1]).sited()), sites.NOWHERE)
