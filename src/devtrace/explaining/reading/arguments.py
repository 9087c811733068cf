"""Parameters: what the caller of a function gave it, by the call that runs or the only one that is written."""

import ast
from collections.abc import Iterator
from types import CodeType, FunctionType, MethodType
from typing import Any

from devtrace.explaining.reading.activation import Activation, Definition
from devtrace.explaining.reading.file_index import index_of
from devtrace.explaining.reading.reader import Reader
from devtrace.explaining.reading.runs import run_around
from devtrace.explaining.reading.values import Known
from devtrace.explaining.stack import CALLS_OF_MODULES
from devtrace.recording.context.module_tree import class_attribute, is_module
from devtrace.source.flow import parameters
from devtrace.source.matching import called_name
from devtrace.source.safe_values import MISSING, evaluate, with_wrapped


def of_parameter(reader: Reader, name: str, activation: Activation) -> Iterator[Definition]:
    """Yield what a function was given for a parameter, by the frame around a live one or by its only call."""
    yield from _of_caller(reader, name, activation)
    yield from _default(name, activation)
    yield from of_only_call(reader, name, activation)


def is_as_given(reader: Reader, name: str, activation: Activation) -> bool:
    """Return whether a parameter of a module's call is still the very object that the call was given."""
    if activation.scope is None or activation.depth == 0 or activation.line < activation.now:
        return False
    around, value = reader.stack.levels[activation.depth - 1].frame, activation.scope.lookup(name)
    if around.f_code not in CALLS_OF_MODULES or value is None:
        return False
    arguments, words = around.f_locals.get("args", ()), around.f_locals.get("kwargs", {})
    return any(each is value for each in (*arguments, *words.values()))


def _of_caller(reader: Reader, name: str, activation: Activation) -> Iterator[Definition]:
    """Yield what the frame around a live one gave a parameter."""
    for depth in reversed(range(activation.depth)):
        if reader.stack.levels[depth].frame.f_code in CALLS_OF_MODULES:
            continue
        node, outer = reader.node(depth), reader.activation(depth)
        code = reader.stack.levels[activation.depth].frame.f_code
        if outer is None or not isinstance(node, ast.Call):
            return
        function = reader.see(node.func, outer)
        skipped = _parameters_before(function.value if isinstance(function, Known) else None, code)
        if skipped is not None:
            names = parameters(activation.body)[skipped:]
            yield from (Definition(each, (), outer) for each in _argument(node, name, names))
        return


def _parameters_before(value: Any, code: CodeType) -> int | None:
    """Return how many parameters a caller does not write (`self`), if it is this function that it calls."""
    if is_module(value):
        forward = class_attribute(type(value), "forward")
        return 1 if type(forward) is FunctionType and forward.__code__ is code else None
    if type(value) is MethodType:
        return 1 if getattr(value.__func__, "__code__", None) is code else None
    return 0 if any(each.__code__ is code for each in with_wrapped(value)) else None


def _argument(call: ast.Call, name: str, names: list[str]) -> Iterator[ast.expr]:
    given = call.args[1:] if called_name(call) == "partial" else call.args
    if not any(isinstance(each, ast.Starred) for each in given):
        yield from (each for each, known in zip(given, names, strict=False) if known == name)
    yield from (word.value for word in call.keywords if word.arg == name)
    for word in call.keywords:
        if word.arg is None:  # `f(**batch)`
            item = ast.Subscript(value=word.value, slice=ast.Constant(name), ctx=ast.Load())
            yield ast.copy_location(item, word.value)


def _default(name: str, activation: Activation) -> Iterator[Definition]:
    """Yield the default of a live frame's parameter, if the parameter is that very object: `mean=MEAN`."""
    arguments = getattr(activation.body, "args", None)
    if activation.scope is None or not isinstance(arguments, ast.arguments):
        return
    positional = [*arguments.posonlyargs, *arguments.args]
    pairs = [*zip(reversed(positional), reversed(arguments.defaults), strict=False)]
    pairs += [(each, value) for each, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if value]
    given = activation.scope.locals.get(name, MISSING)
    for parameter, value in pairs:
        if parameter.arg == name and evaluate(value, activation.scope) is given is not MISSING:
            yield Definition(value, (), activation)


def of_only_call(reader: Reader, name: str, activation: Activation) -> Iterator[Definition]:
    """Yield what the one call in the user's files gives a parameter of a function, or of a class's constructor."""
    called, names = getattr(activation.body, "name", ""), parameters(activation.body)
    parent = activation.source.parent(activation.body)
    if isinstance(parent, ast.ClassDef):
        called, names = (parent.name if called == "__init__" else called), names[1:]
    yield from of_only_call_of(reader, called, name, names)


def of_only_call_of(reader: Reader, called: str, name: str, names: list[str]) -> Iterator[Definition]:
    """Yield what the one call in the user's files gives one of the parameters of what has this name."""
    found = [
        (each, outer)
        for outer in reader.files()
        for call in index_of(outer.source).calls.get(called, ())
        for each in _argument(call, name, names)
    ]
    if len(found) == 1:
        yield Definition(found[0][0], (), run_around(reader, *found[0]))
