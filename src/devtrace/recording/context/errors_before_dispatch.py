"""Reads from a traceback the errors that are raised above the dispatcher, where no mode sees them.

torch refuses scaled_dot_product_attention, LSTM, `.numpy()`, `.data =`, `.cuda()` and wrong arguments before there is
an op. Then the failing expression names the function. Its arguments are looked up by their names; nothing runs for it.
"""

import ast
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from types import BuiltinFunctionType, FrameType, FunctionType, MethodDescriptorType, ModuleType, TracebackType
from typing import Any, NamedTuple

import torch

from devtrace.recording.columns import sites
from devtrace.recording.columns.recorded_ops import RecordedOps
from devtrace.recording.columns.sites import LIBRARY, USER
from devtrace.recording.columns.thread_state import ThreadState
from devtrace.recording.context import module_calls
from devtrace.recording.context.module_tree import is_training
from devtrace.recording.context.modules import Modules
from devtrace.runtime.quiet import device_of, is_tensor
from devtrace.runtime.tracebacks import chain_of, entries_of, text_of
from devtrace.source import parsing, safe_values
from devtrace.source.comprehension_iteration import lost_variables
from devtrace.source.live_objects import forget_locals
from devtrace.source.matching import is_given, is_read, operands, variable
from devtrace.source.parsing import Source
from devtrace.source.safe_values import MISSING, Scope
from devtrace.source.user_code import is_torch_or_ours
from devtrace.source.vocabulary import torch_name

_C_FUNCTIONS = (BuiltinFunctionType, MethodDescriptorType)
_RAISED_BY_TORCH = (RuntimeError, TypeError, ValueError, IndexError, AssertionError, NotImplementedError)


class FailingCall(NamedTuple):
    """A call that raised, and the tensors that it was given."""

    name: str
    tensors: list[torch.Tensor]


def origin_of(error: BaseException, recorder: RecordedOps) -> BaseException:
    """Return the original exception behind `raise StepFailed from error`."""
    chain = list(chain_of(error))
    messages = {failed.message for failed in recorder.failures if failed.message}
    recorded = next((each for each in chain if text_of(each) in messages), None)
    return recorded or next((each for each in chain if failing_call(each) is not None), error)


def was_recorded(error: BaseException, recorder: RecordedOps) -> bool:
    """Return whether an op has this error: it came through the mode, or repeats one that did (a worker's does)."""
    text = text_of(error)
    if any(failed.message and failed.message in text for failed in recorder.failures):
        return True
    silent = {failed.type for failed in recorder.failures if not failed.message}
    return any(type(each).__name__ in silent and not text_of(each) for each in chain_of(error))


def joined(tracebacks: Iterable[list[TracebackType]]) -> list[TracebackType]:
    """Join tracebacks, outermost exception first: each goes on where the one before it has the same frame."""
    entries: list[TracebackType] = []
    for traceback in tracebacks:
        frame_ids = {id(entry.tb_frame) for entry in traceback}
        cut = next((index for index, entry in enumerate(entries) if id(entry.tb_frame) in frame_ids), len(entries))
        entries = [*entries[:cut], *traceback]
    return entries


def failing_call(error: BaseException) -> FailingCall | None:
    """Return the torch call that raised, by the innermost frame that names it; None if the error is not torch's."""
    if not isinstance(error, _RAISED_BY_TORCH):
        return None
    entries = entries_of(error)
    torch_raised = bool(entries) and is_torch_or_ours(entries[-1].tb_frame.f_code.co_filename)
    array = asked_for_an_array(error)
    for entry in reversed(entries):
        is_program = sites.files[entry.tb_frame.f_code.co_filename] in (USER, LIBRARY)
        if array is not None and not (is_program and knows_torch(entry.tb_frame)):
            continue
        call = _call_of(entry, any_call=torch_raised and is_program)
        if is_program or (call is not None and call.tensors):  # not torch's own `torch._C._cuda_init()`
            return call._replace(tensors=[array]) if call is not None and array is not None else call
    return None


def asked_for_an_array(error: BaseException) -> torch.Tensor | None:
    """Return the tensor that numpy asked to be an array, as it does for `np.mean(losses)` and `array[tensor]`."""
    frames = (entry.tb_frame for entry in entries_of(error) if entry.tb_frame.f_code.co_name == "__array__")
    return next((frame.f_locals["self"] for frame in frames if is_torch_or_ours(frame.f_code.co_filename)), None)


def knows_torch(frame: FrameType) -> bool:
    """Return whether code is the user's, or in a package's file that imports torch.

    numpy, pandas and scikit-learn fail on a tensor deep inside; the line to mend is their caller's.
    """
    if sites.files[frame.f_code.co_filename] != LIBRARY:
        return True
    modules = (_module_name(value) for value in list(frame.f_globals.values()))
    return any(name == "torch" or name.startswith("torch.") for name in modules)


def _module_name(value: object) -> str:
    """Return the name of a module, or of the one that a function or class is of."""
    if isinstance(value, ModuleType):
        return str(value.__name__)
    return str(value.__module__) if type(value) in (type, FunctionType) else ""


def _call_of(entry: TracebackType, *, any_call: bool) -> FailingCall | None:
    """Return the failing call of a frame. `any_call`: torch's own Python raised below, so any call counts."""
    frame = entry.tb_frame
    source, node = parsing.node_of(frame.f_code, entry.tb_lasti)
    if is_given(node):
        node = source.statement(node)  # `p.grad = g`, of which an instruction is only the target
    if node is parsing.NO_CODE or isinstance(node, ast.Raise | ast.Assert):
        return None
    try:
        plain_scope, inner = Scope.of(frame), entry.tb_next.tb_frame if entry.tb_next is not None else None
        lost = lost_variables(frame, (source, node), inner, lambda each: device_of(each) if is_tensor(each) else None)
        scope = Scope({**plain_scope.locals, **lost}, plain_scope.globals) if lost else plain_scope
        name = _function_name(node, scope, any_call=any_call)
        return FailingCall(name, _tensors_given(inner) or _tensors_read(node, source, scope)) if name else None
    finally:
        forget_locals(frame)


def _function_name(node: ast.AST, scope: Scope, *, any_call: bool) -> str:
    """Name the torch function of a piece of code: `Tensor.numpy`, `LSTM`; empty if there is none."""
    match node:  # `with torch.cuda.device(7):` is refused as it is entered
        case ast.Call(func=function):
            return _callee_name(function, scope, any_call=any_call)
        case ast.Assign(targets=[expression]) | ast.With(items=[ast.withitem(context_expr=expression), *_]):
            return _function_name(expression, scope, any_call=any_call)
        case ast.BinOp() | ast.Compare() | ast.UnaryOp() | ast.AugAssign():
            return _method(type(getattr(node, "op", node)).__name__.lower(), operands(node), scope, any_call=any_call)
        case ast.Subscript(value=owner):
            return _method("__getitem__" if is_read(node) else "__setitem__", [owner], scope, any_call=any_call)
    return _tensor_attribute(node, scope)


def _tensor_attribute(node: ast.AST, scope: Scope) -> str:
    """Return `Tensor.numpy` for `x.numpy` of a tensor `x`; empty for any other code."""
    match node:
        case ast.Attribute(value=owner, attr=name) if is_tensor(safe_values.evaluate(owner, scope)):
            return f"Tensor.{name}"
    return ""


def _method(name: str, parts: Iterable[ast.expr], scope: Scope, *, any_call: bool) -> str:
    """Return `Tensor.add` for `x + 1` of a tensor; with `any_call` `add` for all else (`array[x]`), else empty."""
    is_of_tensor = any(is_tensor(safe_values.evaluate(each, scope)) for each in parts)
    return f"Tensor.{name}" if is_of_tensor else name if any_call else ""


def _callee_name(expression: ast.expr, scope: Scope, *, any_call: bool) -> str:
    if attribute_name := _tensor_attribute(expression, scope):
        return attribute_name
    callee = safe_values.evaluate(expression, scope)
    original = _unwrap(callee)
    any_call = any_call or (original is not callee and type(callee) is FunctionType)  # ours raised, and left no frame
    if issubclass(type(original), torch.nn.Module):
        return type(original).__name__ if any_call else ""
    if type(original) in _C_FUNCTIONS or isinstance(original, FunctionType):
        if any_call or type(original) in _C_FUNCTIONS:
            return str(original.__name__) if any_call else torch_name(original)
    elif any_call and original is not MISSING:  # `np.sin`
        return getattr(expression, "attr", variable(expression))
    # `torch._VF.lstm` is found by a __getattr__ and a method by binding, which nobody runs here: the text must do.
    match expression:
        case ast.Attribute(value=owner, attr=name) if original is MISSING:
            is_known = any_call or ast.unparse(owner) in ("_VF", "torch._C._nn")
            return name if is_known else _method_of_a_result(name)
    return ""


def _method_of_a_result(name: str) -> str:
    """Return `Tensor.numpy` for `f(x).numpy()`: C raised in this line, without a frame. Empty if no tensor has it."""
    return f"Tensor.{name}" if type(getattr(torch.Tensor, name, None)) in (MethodDescriptorType, FunctionType) else ""


def _unwrap(value: Any) -> Any:
    """Return the function that one of ours, or a `functools.partial`, wraps; else the value itself."""
    value = value.func if type(value) is partial else value
    ours = isinstance(value, FunctionType) and is_torch_or_ours(value.__code__.co_filename)
    return value.__dict__.get("__wrapped__", value) if ours else value


def _tensors_given(frame: FrameType | None) -> list[torch.Tensor]:
    """Return the tensors of a module's call, as its frame has them: also the inner result of `rnn(embed(ids))`."""
    if frame is None or frame.f_code is not getattr(module_calls.original, "__code__", None):
        return []
    return _tensors_in([*frame.f_locals["args"], *frame.f_locals["kwargs"].values()])


def _tensors_read(node: ast.AST, source: Source, scope: Scope) -> list[torch.Tensor]:
    """Return the tensors that the expression reads, in its order, those in lists and `**options` among them."""
    return _tensors_in(value for _, _, value in safe_values.values(node, source, scope))


def _tensors_in(values: Iterable[Any]) -> list[torch.Tensor]:
    tensors: dict[int, torch.Tensor] = {}
    for value in values:
        parts = value if type(value) in (list, tuple) else [*value.values()] if type(value) is dict else [value]
        tensors.update((id(each), each) for each in parts if is_tensor(each))
    return list(tensors.values())


@contextmanager
def in_calls_of(error: BaseException, state: ThreadState, modules: Modules, *, are_recorded: bool) -> Iterator[None]:
    """Let an op that is noted in this block be in the module calls that the error ended, recorded or not."""
    with ExitStack() as stack:
        parent = -1
        for module in _called_modules(error):
            row = modules.row_of(module)
            if are_recorded:
                parent = state.reopen(row, parent)
            elif row >= 0:
                outer_state = state.open(row, None, training=is_training(module), plain=False)
                stack.callback(state.close, outer_state)
        yield


def _called_modules(error: BaseException) -> Iterator[torch.nn.Module]:
    """Yield the modules whose calls the error ended, outermost first, by the frames of torch's own call."""
    code = getattr(module_calls.original, "__code__", None)
    for entry in entries_of(error):
        if entry.tb_frame.f_code is code:
            module = entry.tb_frame.f_locals.get("self")
            forget_locals(entry.tb_frame)
            if isinstance(module, torch.nn.Module):
                yield module
