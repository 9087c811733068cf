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


class Failing(NamedTuple):
    """A call that raised, and the tensors that it was given."""

    name: str
    tensors: list[torch.Tensor]


def origin_of(error: BaseException, recorder: RecordedOps) -> BaseException:
    """Return the original exception behind `raise StepFailed from error`."""
    chain = list(chain_of(error))
    messages = {failed.message for failed in recorder.failures if failed.message}
    recorded = next((each for each in chain if text_of(each) in messages), None)
    return recorded or next((each for each in chain if failing(each) is not None), error)


def was_recorded(error: BaseException, recorder: RecordedOps) -> bool:
    """Return whether an op has this error: it came through the mode, or repeats one that did (a worker's does)."""
    text = text_of(error)
    if any(failed.message and failed.message in text for failed in recorder.failures):
        return True
    silent = {failed.type for failed in recorder.failures if not failed.message}
    return any(type(each).__name__ in silent and not text_of(each) for each in chain_of(error))


def joined(raised: Iterable[list[TracebackType]]) -> list[TracebackType]:
    """Join the tracebacks of chained exceptions into one."""
    entries: list[TracebackType] = []
    for inner in raised:
        handled = {id(entry.tb_frame) for entry in inner}
        above = next((at for at, entry in enumerate(entries) if id(entry.tb_frame) in handled), len(entries))
        entries = [*entries[:above], *inner]
    return entries


def failing(error: BaseException) -> Failing | None:
    """Return the torch call that raised, by the innermost frame that names it; None if the error is not torch's."""
    if not isinstance(error, _RAISED_BY_TORCH):
        return None
    entries = entries_of(error)
    inside = bool(entries) and is_torch_or_ours(entries[-1].tb_frame.f_code.co_filename)
    array = asked_for_an_array(error)
    for entry in reversed(entries):
        theirs = sites.files[entry.tb_frame.f_code.co_filename] in (USER, LIBRARY)
        if array is not None and not (theirs and knows_torch(entry.tb_frame)):
            continue
        found = _called(entry, anything=inside and theirs)
        if theirs or (found is not None and found.tensors):  # not torch's own `torch._C._cuda_init()`
            return found._replace(tensors=[array]) if found is not None and array is not None else found
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


def _called(entry: TracebackType, *, anything: bool) -> Failing | None:
    """Return the failing call of a frame. `anything`: torch's own Python raised below, so any call counts."""
    frame = entry.tb_frame
    source, node = parsing.node_of(frame.f_code, entry.tb_lasti)
    if is_given(node):
        node = source.statement(node)  # `p.grad = g`, of which an instruction is only the target
    if node is parsing.NO_CODE or isinstance(node, ast.Raise | ast.Assert):
        return None
    try:
        own, below = Scope.of(frame), entry.tb_next.tb_frame if entry.tb_next is not None else None
        lost = lost_variables(frame, (source, node), below, lambda each: device_of(each) if is_tensor(each) else None)
        scope = Scope({**own.locals, **lost}, own.globals) if lost else own
        name = _name(node, scope, anything=anything)
        return Failing(name, _given_to_module(below) or _tensors(node, source, scope)) if name else None
    finally:
        forget_locals(frame)


def _name(node: ast.AST, scope: Scope, *, anything: bool) -> str:
    """Name the torch function of a piece of code: `Tensor.numpy`, `LSTM`; empty if there is none."""
    match node:  # `with torch.cuda.device(7):` is refused as it is entered
        case ast.Call(func=function):
            return _callee(function, scope, anything=anything)
        case ast.Assign(targets=[inner]) | ast.With(items=[ast.withitem(context_expr=inner), *_]):
            return _name(inner, scope, anything=anything)
        case ast.BinOp() | ast.Compare() | ast.UnaryOp() | ast.AugAssign():
            return _method(type(getattr(node, "op", node)).__name__.lower(), operands(node), scope, anything=anything)
        case ast.Subscript(value=owner):
            return _method("__getitem__" if is_read(node) else "__setitem__", [owner], scope, anything=anything)
    return _of_a_tensor(node, scope)


def _of_a_tensor(node: ast.AST, scope: Scope) -> str:
    """Name what code looks up on a tensor: `Tensor.numpy`; empty for any other code."""
    match node:
        case ast.Attribute(value=owner, attr=name) if is_tensor(safe_values.evaluate(owner, scope)):
            return f"Tensor.{name}"
    return ""


def _method(name: str, of: Iterable[ast.expr], scope: Scope, *, anything: bool) -> str:
    """Name an operator or a subscript: a tensor's, or anything's where torch raised below, as for `array[tensor]`."""
    of_tensor = any(is_tensor(safe_values.evaluate(each, scope)) for each in of)
    return f"Tensor.{name}" if of_tensor else name if anything else ""


def _callee(function: ast.expr, scope: Scope, *, anything: bool) -> str:
    if named := _of_a_tensor(function, scope):
        return named
    found = safe_values.evaluate(function, scope)
    value = _unwrapped(found)
    anything = anything or (value is not found and type(found) is FunctionType)  # ours raised, and left no frame
    if issubclass(type(value), torch.nn.Module):
        return type(value).__name__ if anything else ""
    if type(value) in _C_FUNCTIONS or isinstance(value, FunctionType):
        if anything or type(value) in _C_FUNCTIONS:
            return str(value.__name__) if anything else torch_name(value)
    elif anything and value is not MISSING:  # `np.sin`
        return getattr(function, "attr", variable(function))
    # `torch._VF.lstm` is found by a __getattr__ and a method by binding, which nobody runs here: the text must do.
    match function:
        case ast.Attribute(value=owner, attr=name) if value is MISSING:
            is_known = anything or ast.unparse(owner) in ("_VF", "torch._C._nn")
            return name if is_known else _method_of_a_result(name)
    return ""


def _method_of_a_result(name: str) -> str:
    """Name a method of an inner call's result, `f(x).numpy()`: C raised in this line, without a frame."""
    return f"Tensor.{name}" if type(getattr(torch.Tensor, name, None)) in (MethodDescriptorType, FunctionType) else ""


def _unwrapped(value: Any) -> Any:
    """Return torch's own function, where one of a simulated device or a `functools.partial` wraps it."""
    value = value.func if type(value) is partial else value
    ours = isinstance(value, FunctionType) and is_torch_or_ours(value.__code__.co_filename)
    return value.__dict__.get("__wrapped__", value) if ours else value


def _given_to_module(frame: FrameType | None) -> list[torch.Tensor]:
    """Return the tensors of a module's call, as its frame has them: also the inner result of `rnn(embed(ids))`."""
    if frame is None or frame.f_code is not getattr(module_calls.original, "__code__", None):
        return []
    return _distinct([*frame.f_locals["args"], *frame.f_locals["kwargs"].values()])


def _tensors(node: ast.AST, source: Source, scope: Scope) -> list[torch.Tensor]:
    """Return the tensors that the expression reads, in its order, those in lists and `**options` among them."""
    return _distinct(value for _, _, value in safe_values.values(node, source, scope))


def _distinct(values: Iterable[Any]) -> list[torch.Tensor]:
    found: dict[int, torch.Tensor] = {}
    for value in values:
        inner = value if type(value) in (list, tuple) else [*value.values()] if type(value) is dict else [value]
        found.update((id(each), each) for each in inner if is_tensor(each))
    return list(found.values())


@contextmanager
def calls_again(error: BaseException, state: ThreadState, modules: Modules, *, are_recorded: bool) -> Iterator[None]:
    """Extend the module calls that the error ended by one op, its own; open them if none of them was recorded."""
    with ExitStack() as stack:
        parent = -1
        for module in _called_modules(error):
            row = modules.row_of(module)
            if are_recorded:
                parent = state.reopen(row, parent)
            elif row >= 0:
                before = state.open(row, None, training=is_training(module), plain=False)
                stack.callback(state.close, before)
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
