"""Runs of functions that have returned: where their source is, what they were given, what they returned."""

import ast
import functools
from collections.abc import Mapping
from types import CodeType, FunctionType, MethodType
from typing import Any, Final

from devtrace.explaining.reading.activation import END, Activation
from devtrace.explaining.reading.reader import Reader
from devtrace.explaining.reading.values import Known, Value
from devtrace.recording.columns import sites
from devtrace.recording.context.module_tree import is_module
from devtrace.source import parsing
from devtrace.source.flow import FUNCTIONS, parameters, statements
from devtrace.source.safe_values import class_dict, classes_of

_CACHED: Final = type(functools.cache(len))


def is_theirs(code: CodeType) -> bool:
    """Return whether code is the user's or a package's, to be read."""
    return sites.files[code.co_filename] in (sites.USER, sites.LIBRARY)


def run_of(
    reader: Reader, function: FunctionType, bound: dict[str, Value | None], activation: Activation
) -> Activation | None:
    """Return a run of a function that was called from another and has returned; None without source."""
    code = function.__code__
    source = parsing.read(code.co_filename)
    body = source.body_of(code) if source is not None else None
    if source is None or body is None or activation.level > 8:
        return None
    own = bound.get(code.co_varnames[0]) if code.co_argcount else None
    module = own.value if isinstance(own, Known) and is_module(own.value) else None
    is_built = code.co_name == "__init__" or (module is not None and _is_part_of_constructor(module, code.co_name))
    return Activation(
        source,
        body,
        END,
        activation.depth,
        function.__globals__,
        bound={**_closed_over(reader, function), **bound},
        caller=activation.caller,
        module=activation.module if module is None or is_built else module,
        owner=None if is_built else module or activation.owner,
        level=activation.level + 1,
    )


def _is_part_of_constructor(module: Any, method: str) -> bool:
    """Return whether a constructor of a module's own classes names a method: `self.reset()`."""
    constructors = (class_dict(kind).get("__init__") for kind in classes_of(type(module)))
    codes = (each.__code__ for each in constructors if type(each) is FunctionType)
    return any(method in code.co_names for code in codes if is_theirs(code))


def _closed_over(reader: Reader, function: FunctionType) -> dict[str, Value | None]:
    found: dict[str, Value | None] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            found[name] = reader.value(cell.cell_contents)
        except ValueError:  # not bound yet
            continue
    return found


def run_around(reader: Reader, node: ast.AST, activation: Activation) -> Activation:
    """Return a run of the function around a node of a file, of which nothing is known but its globals."""
    source = activation.source
    body: ast.AST = next((each for each in source.ancestors(node) if isinstance(each, FUNCTIONS)), source.tree)
    for live in reader.user_activations():
        if live.source is source and live.body is body:
            return live.at_node(node)
    owner = next((each for each in source.ancestors(body) if isinstance(each, ast.ClassDef)), None)
    return Activation(
        source,
        body,
        source.span(node).line,
        0,  # it ran before anything that still runs
        activation.globals,
        bound=_unknown_parameters(body, is_method=owner is not None),
        level=activation.level + 1,
    )


def _unknown_parameters(body: ast.AST, *, is_method: bool) -> dict[str, Value | None]:
    """Bind `self`, which nobody knows."""
    return dict.fromkeys(parameters(body)[:1]) if is_method else {}


def arguments(
    function: FunctionType, given: list[Value | None], words: Mapping[str, Value | None]
) -> dict[str, Value | None]:
    """Return what a call gives a function's parameters, defaults included."""
    code = function.__code__
    positional = code.co_varnames[: code.co_argcount]
    bound: dict[str, Value | None] = {**dict(zip(positional, given, strict=False)), **words}
    defaults = function.__defaults__ or ()
    for name, value in zip(positional[len(positional) - len(defaults) :], defaults, strict=False):
        bound.setdefault(name, Known(value))
    for name, value in (function.__kwdefaults__ or {}).items():
        bound.setdefault(name, Known(value))
    return bound


def returned(
    reader: Reader,
    function: FunctionType,
    given: list[Value | None],
    words: Mapping[str, Value | None],
    activation: Activation,
) -> Value | None:
    """Return what a function that has returned gave back: the value of its last `return` that can be read."""
    run = run_of(reader, function, arguments(function, given, words), activation)
    if run is None:
        return None
    values = (reader.see(node, run.at_node(node)) for node in results(run.body))
    return next((value for value in values if value is not None), None)


def results(body: ast.AST) -> list[ast.expr]:
    """Return the expressions that a function returns, the last first; of a generator a list of what it yields."""
    if isinstance(body, ast.Lambda):
        return [body.body]
    yielded = [
        node.value
        for statement in statements(body)
        if isinstance(statement, ast.Expr | ast.Assign)
        for node in [statement.value]
        if isinstance(node, ast.Yield) and node.value is not None
    ]
    if yielded:
        return [ast.copy_location(ast.List(elts=yielded, ctx=ast.Load()), yielded[0])]
    found = [each for each in statements(body) if isinstance(each, ast.Return)]
    return [each.value for each in reversed(found) if each.value is not None]


def _behind_cache(value: Any) -> Any:
    """Return the function of `functools.cache` and `lru_cache`."""
    return value.__wrapped__ if type(value) is _CACHED else value


def function_of(value: Any) -> tuple[FunctionType | None, list[Value | None]]:
    """Return the function that calling an object runs, with what it is given before the arguments: `self`."""
    value = _behind_cache(value)
    if type(value) is MethodType:
        function = _behind_cache(value.__func__)
        return (function, [Known(value.__self__)]) if type(function) is FunctionType else (None, [])
    if type(value) is FunctionType:
        inner = value.__dict__.get("__wrapped__")
        return (inner if type(inner) is FunctionType and not is_theirs(value.__code__) else value), []
    for kind in classes_of(type(value)):
        function = class_dict(kind).get("__call__")
        if function is not None:
            return (function, [Known(value)]) if type(function) is FunctionType else (None, [])
    return None, []
