"""Values of a function's parameters: from the caller's frame, from a default, from its only call."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from inspect import CO_VARARGS
from types import CodeType, FrameType, FunctionType, MappingProxyType, MethodType
from typing import Any

from devtrace.explaining.reading import hooks
from devtrace.explaining.reading.file_index import named
from devtrace.explaining.reading.reader import Reader
from devtrace.explaining.reading.returned_calls import run_around
from devtrace.explaining.reading.values import Activation, Definition, KnownValue, Value, item_of
from devtrace.explaining.stack import CALLS_OF_MODULES, HOOKED_CALL
from devtrace.recording.context.module_tree import class_attribute, is_module, subtree
from devtrace.source.matching import called_name, hands_on, may_be_text, star_at
from devtrace.source.parsing import defaults, parameters
from devtrace.source.safe_values import MISSING, evaluate, kept_defaults, with_wrapped
from devtrace.source.vocabulary import FACTS


def of_parameter(reader: Reader, name: str, activation: Activation) -> Iterator[Definition]:
    """Yield the arguments for a parameter: of the calling frame, or of the function's only call."""
    yield from _of_caller(reader, name, activation)
    yield from _default(reader, name, activation)
    yield from of_only_call(reader, name, activation)


def is_as_given(reader: Reader, name: str, activation: Activation) -> bool:
    """Return whether a parameter of a module's call still holds the object that was passed."""
    if activation.scope is None or activation.depth == 0 or activation.line < activation.now:
        return False
    around, value = reader.stack.levels[activation.depth - 1].frame, activation.scope.lookup(name)
    if around.f_code not in (*CALLS_OF_MODULES, HOOKED_CALL) or value is None:
        return False
    arguments, words = around.f_locals.get("args", ()), around.f_locals.get("kwargs", {})
    return any(each is value for each in (*arguments, *words.values()))


def _of_caller(reader: Reader, name: str, activation: Activation) -> Iterator[Definition]:
    """Yield the argument that the calling frame passed for a parameter."""
    code, handed, hooked = reader.stack.levels[activation.depth].frame.f_code, None, None
    for depth in reversed(range(activation.depth)):
        around = reader.stack.levels[depth].frame
        hooked = around.f_locals.get("self") if around.f_code is HOOKED_CALL else hooked
        if around.f_code in CALLS_OF_MODULES:
            continue
        node, outer = reader.node(depth), reader.activation(depth)
        if hands_on(node, (*around.f_code.co_varnames, *around.f_code.co_freevars)):
            handed = around
            continue
        if outer is None or not isinstance(node, ast.Call):
            return
        maker = node.func.func if isinstance(node.func, ast.Call) else None  # a module's, called at once: `Filter()(x)`
        function = reader.see(node.func, outer) or reader.see(maker, outer)
        skipped = _parameters_before(function.value if isinstance(function, KnownValue) else None, code)
        own = 0
        if skipped is None and handed is not None:
            skipped, own = _parameters_beside(activation, handed), _own_parameters(handed)
        if skipped is not None:
            names = _positional(activation.body)[skipped:]
            gathered = getattr(getattr(activation.body, "args", None), "vararg", None)
            rest = node.args[own + len(names) :]  # of `*args`, as a tuple if each is written out
            if name == getattr(gathered, "arg", "") and rest and star_at(rest) == len(rest):
                yield Definition(ast.copy_location(ast.Tuple(elts=rest, ctx=ast.Load()), rest[0]), (), outer)
            if hooked is not None:
                yield from hooks.given_for(reader, hooked, name, names, node, outer)
            yield from (Definition(each, (), outer) for each in _argument(node, name, names, own))
        return


def _positional(body: ast.AST) -> list[str]:
    given = getattr(body, "args", None)
    return [each.arg for each in (*given.posonlyargs, *given.args)] if given is not None else []


def _parameters_before(value: Any, code: CodeType) -> int | None:
    """Return the number of parameters that a call leaves out (`self`), if it calls this function."""
    kind = value if issubclass(type(value), type) else type(value)
    if is_module(value) or kind is value:
        forward = class_attribute(kind, "forward")
        return 1 if type(forward) is FunctionType and forward.__code__ is code else None
    if type(value) is MethodType:
        return 1 if getattr(value.__func__, "__code__", None) is code else None
    return 0 if any(each.__code__ is code for each in with_wrapped(value)) else None


def _parameters_beside(activation: Activation, handed: FrameType) -> int | None:
    """Return the number of parameters that its dispatcher was not passed: `self`."""
    code = handed.f_code
    gathers = bool(code.co_flags & CO_VARARGS)  # else the arguments are those of a function around it
    given = handed.f_locals.get(code.co_varnames[code.co_argcount + code.co_kwonlyargcount]) if gathers else ()
    names = parameters(activation.body)[:2]
    values = [activation.scope.locals.get(name) for name in names] if activation.scope is not None else []
    return next((at for at, value in enumerate(values) if given and value is given[0]), None)


def _own_parameters(handed: FrameType) -> int:
    """Return the number of arguments that a dispatcher keeps for itself, without the object of its method."""
    code = handed.f_code
    first = handed.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
    method = class_attribute(type(first), code.co_name)
    return code.co_argcount - (getattr(method, "__code__", None) is code)


def _argument(call: ast.Call, name: str, names: list[str], start: int = 0) -> Iterator[ast.expr]:
    given = call.args[1:] if called_name(call) == "partial" else call.args[start:]
    at, star = names.index(name) if name in names else len(given), star_at(given)
    if at < star:
        yield given[at]
    elif name in names and star == len(given) - 1:  # `f(x, *others)`
        yield item_of(getattr(given[star], "value", given[star]), at - star)
    yield from (word.value for word in call.keywords if word.arg == name)
    yield from (item_of(word.value, name) for word in call.keywords if word.arg is None)  # `f(**batch)`


def _default(reader: Reader, name: str, activation: Activation) -> Iterator[Definition]:
    """Yield the default of a live frame's parameter, if the parameter still holds it: `mean=MEAN`."""
    if activation.scope is None:
        return
    given = activation.scope.locals.get(name, MISSING)
    code = reader.stack.levels[activation.depth].frame.f_code
    for parameter, value in defaults(activation.body):
        if parameter == name and evaluate(value, activation.scope) is given is not MISSING:
            yield Definition(value, (), activation)
        elif parameter == name and kept_defaults(code, activation.globals).get(name, MISSING) is given is not MISSING:
            around = activation.source.parent(activation.body) or activation.source.tree
            yield Definition(value, (), run_around(reader, around, activation))


def of_only_call(reader: Reader, name: str, activation: Activation) -> Iterator[Definition]:
    """Yield the argument for a parameter in the only call of a function or class in the user's files."""
    called, names = getattr(activation.body, "name", ""), _positional(activation.body)
    parent = activation.source.parent(activation.body)
    if isinstance(parent, ast.ClassDef):
        called, names = (parent.name if called == "__init__" else called), names[1:]
    known = ((each, value.value) for each, value in activation.bound.items() if isinstance(value, KnownValue))
    texts = {parameter: value for parameter, value in known if type(value) is str}
    yield from of_only_call_of(reader, called, name, names, texts)


def of_only_call_of(
    reader: Reader,
    called: str,
    name: str,
    names: list[str],
    texts: Mapping[str, str] = MappingProxyType({}),
    others: Iterable[Activation] = (),
) -> Iterator[Definition]:
    """Yield the argument for a parameter in the only call of a name in the user's files.

    `texts` are arguments that the call must have, such as "seen" in `self.add("seen", zeros)`. A call that
    passes on an attribute, `Batch(self.mask)`, does not count; `Cache(x.device)` does.
    """
    files = {each.source.file: each for each in (*reader.files(), *others)}
    found = [
        (each, outer)
        for outer in files.values()
        for call in named(outer.source, called).calls
        if all(may_be_text(each, text) for word, text in texts.items() for each in _argument(call, word, names))
        for each in _argument(call, name, names)
        if getattr(each, "attr", "") != name or name in FACTS
    ]
    if len(found) == 1:
        yield Definition(found[0][0], (), run_around(reader, *found[0]))


def put_in_place(reader: Reader, owner: Any, name: str) -> Value | None:
    """Return what `functional_call(net, weights, x)` put in place of a module's own tensor while it ran."""
    for depth, frame in enumerate(level.frame for level in reader.stack.levels):
        given = frame.f_locals.get("parameters_and_buffers") if frame.f_code.co_name == "_functional_call" else None
        paths = subtree(frame.f_locals["module"]) if type(given) is dict else ()
        for key in (f"{path}.{name}".lstrip(".") for path, part in paths if part is owner):
            at = next((outer for outer in reversed(range(depth)) if reader.stack.levels[outer].is_readable), depth)
            run, weights = reader.activation(at), getattr(reader.node(at), "args", [])[1:2]
            if run is not None and weights:
                reader.see(item_of(weights[0], key), run)  # which finds out what made it
            return reader.value(given[key]) if given is not None and key in given else None
    return None
