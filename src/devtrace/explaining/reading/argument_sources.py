"""Values of a function's parameters: from the caller's frame, from a default, from its only call."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from inspect import CO_VARARGS
from types import CodeType, FrameType, FunctionType, MappingProxyType, MethodType
from typing import Any

from devtrace.explaining.reading import hooks
from devtrace.explaining.reading.file_index import mentions
from devtrace.explaining.reading.reader import Reader
from devtrace.explaining.reading.returned_calls import run_around
from devtrace.explaining.reading.values import Activation, Definition, KnownValue, Value, item_of
from devtrace.explaining.stack import CALLS_OF_MODULES, HOOKED_CALL
from devtrace.recording.context.module_tree import class_attribute, is_module, subtree
from devtrace.source.matching import called_name, hands_on, may_be_text, star_at
from devtrace.source.parsing import defaults, parameters
from devtrace.source.safe_values import MISSING, evaluate, kept_defaults, with_wrapped
from devtrace.source.vocabulary import FACTS


def definitions_of_parameter(reader: Reader, name: str, activation: Activation) -> Iterator[Definition]:
    """Yield the arguments for a parameter: of the calling frame, or of the function's only call."""
    yield from _from_caller(reader, name, activation)
    yield from _from_default(reader, name, activation)
    yield from from_only_call(reader, name, activation)


def still_holds_argument(reader: Reader, name: str, activation: Activation) -> bool:
    """Return whether a parameter of a module's forward still holds the object that the call passed."""
    if activation.scope is None or activation.depth == 0 or activation.line < activation.now:
        return False
    caller, value = reader.stack.levels[activation.depth - 1].frame, activation.scope.lookup(name)
    if caller.f_code not in (*CALLS_OF_MODULES, HOOKED_CALL) or value is None:
        return False
    arguments, keywords = caller.f_locals.get("args", ()), caller.f_locals.get("kwargs", {})
    return any(argument is value for argument in (*arguments, *keywords.values()))


def _from_caller(reader: Reader, name: str, activation: Activation) -> Iterator[Definition]:
    """Yield the code that the caller of a live frame passed for a parameter, past wrappers and torch's frames."""
    code, dispatcher, hooked_module = reader.stack.levels[activation.depth].frame.f_code, None, None
    for depth in reversed(range(activation.depth)):
        frame = reader.stack.levels[depth].frame
        hooked_module = frame.f_locals.get("self") if frame.f_code is HOOKED_CALL else hooked_module
        if frame.f_code in CALLS_OF_MODULES:  # torch's own frames between a call and forward
            continue
        node, caller = reader.node(depth), reader.activation(depth)
        if hands_on(node, (*frame.f_code.co_varnames, *frame.f_code.co_freevars)):
            dispatcher = frame  # such as a decorator's wrapper
            continue
        if caller is None or not isinstance(node, ast.Call):
            return
        maker = node.func.func if isinstance(node.func, ast.Call) else None  # `Filter` of `Filter()(x)`
        function = reader.see(node.func, caller) or reader.see(maker, caller)
        skipped = _parameters_before(function.value if isinstance(function, KnownValue) else None, code)
        taken = 0
        if skipped is None and dispatcher is not None:
            skipped, taken = _parameters_beside(activation, dispatcher), _own_parameters(dispatcher)
        if skipped is not None:
            names = _positional_parameters(activation.body)[skipped:]
            star = getattr(getattr(activation.body, "args", None), "vararg", None)
            rest = node.args[taken + len(names) :]  # what `*args` gets, a tuple if each is written out
            if name == getattr(star, "arg", "") and rest and star_at(rest) == len(rest):
                yield Definition(ast.copy_location(ast.Tuple(elts=rest, ctx=ast.Load()), rest[0]), (), caller)
            if hooked_module is not None:
                yield from hooks.definitions_by_hooks(reader, hooked_module, name, names, node, caller)
            yield from (Definition(argument, (), caller) for argument in _argument_nodes(node, name, names, taken))
        return


def _positional_parameters(body: ast.AST) -> list[str]:
    signature = getattr(body, "args", None)
    return [parameter.arg for parameter in (*signature.posonlyargs, *signature.args)] if signature is not None else []


def _parameters_before(value: Any, code: CodeType) -> int | None:
    """Return how many parameters a call of `value` fills by itself (`self`); None if the call does not run `code`."""
    kind = value if issubclass(type(value), type) else type(value)
    if is_module(value) or kind is value:
        forward = class_attribute(kind, "forward")
        return 1 if type(forward) is FunctionType and forward.__code__ is code else None
    if type(value) is MethodType:
        return 1 if getattr(value.__func__, "__code__", None) is code else None
    return 0 if any(function.__code__ is code for function in with_wrapped(value)) else None


def _parameters_beside(activation: Activation, dispatcher: FrameType) -> int | None:
    """Return how many parameters, such as `self`, precede the first argument that a dispatcher passed on."""
    code = dispatcher.f_code
    gathers = bool(code.co_flags & CO_VARARGS)  # else the arguments are those of a function around it
    received = dispatcher.f_locals.get(code.co_varnames[code.co_argcount + code.co_kwonlyargcount]) if gathers else ()
    names = parameters(activation.body)[:2]
    values = [activation.scope.locals.get(name) for name in names] if activation.scope is not None else []
    return next((index for index, value in enumerate(values) if received and value is received[0]), None)


def _own_parameters(dispatcher: FrameType) -> int:
    """Return how many arguments a dispatcher, `def wrapper(first, *args)`, keeps for itself; `self` does not count."""
    code = dispatcher.f_code
    owner = dispatcher.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
    method = class_attribute(type(owner), code.co_name)
    return code.co_argcount - (getattr(method, "__code__", None) is code)  # one less for a method's `self`


def _argument_nodes(call: ast.Call, name: str, names: list[str], start: int = 0) -> Iterator[ast.expr]:
    """Yield the code that a call passes for the parameter `name`; `names` are those from argument `start` on."""
    arguments = call.args[1:] if called_name(call) == "partial" else call.args[start:]
    index, star = names.index(name) if name in names else len(arguments), star_at(arguments)
    if index < star:
        yield arguments[index]
    elif name in names and star == len(arguments) - 1:  # `f(x, *others)`
        yield item_of(getattr(arguments[star], "value", arguments[star]), index - star)
    yield from (word.value for word in call.keywords if word.arg == name)
    yield from (item_of(word.value, name) for word in call.keywords if word.arg is None)  # `f(**batch)`


def _from_default(reader: Reader, name: str, activation: Activation) -> Iterator[Definition]:
    """Yield the default of a live frame's parameter, if the parameter still holds it: `mean=MEAN`."""
    if activation.scope is None:
        return
    current = activation.scope.locals.get(name, MISSING)
    code = reader.stack.levels[activation.depth].frame.f_code
    for parameter, value in defaults(activation.body):
        if parameter == name and evaluate(value, activation.scope) is current is not MISSING:
            yield Definition(value, (), activation)
        elif parameter == name and kept_defaults(code, activation.globals).get(name, MISSING) is current is not MISSING:
            outer = activation.source.parent(activation.body) or activation.source.tree
            yield Definition(value, (), run_around(reader, outer, activation))


def from_only_call(reader: Reader, name: str, activation: Activation) -> Iterator[Definition]:
    """Yield the argument for a parameter in the only call of a function or class in the user's files."""
    called, names = getattr(activation.body, "name", ""), _positional_parameters(activation.body)
    parent = activation.source.parent(activation.body)
    if isinstance(parent, ast.ClassDef):
        called, names = (parent.name if called == "__init__" else called), names[1:]
    constants = ((word, value.value) for word, value in activation.bound.items() if isinstance(value, KnownValue))
    texts = {parameter: value for parameter, value in constants if type(value) is str}
    yield from from_only_call_of(reader, called, name, names, texts)


def from_only_call_of(
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
    files = {run.source.file: run for run in (*reader.files(), *others)}
    passed = [
        (argument, outer)
        for outer in files.values()
        for call in mentions(outer.source, called).calls
        if all(may_be_text(given, text) for word, text in texts.items() for given in _argument_nodes(call, word, names))
        for argument in _argument_nodes(call, name, names)
        if getattr(argument, "attr", "") != name or name in FACTS
    ]
    if len(passed) == 1:
        yield Definition(passed[0][0], (), run_around(reader, *passed[0]))


def put_in_place(reader: Reader, owner: Any, name: str) -> Value | None:
    """Return what `functional_call(net, weights, x)` put in place of a module's own tensor while it ran."""
    for depth, frame in enumerate(level.frame for level in reader.stack.levels):
        tensors = frame.f_locals.get("parameters_and_buffers") if frame.f_code.co_name == "_functional_call" else None
        paths = subtree(frame.f_locals["module"]) if type(tensors) is dict else ()
        for key in (f"{path}.{name}".lstrip(".") for path, part in paths if part is owner):
            caller = next((outer for outer in reversed(range(depth)) if reader.stack.levels[outer].is_readable), depth)
            run, weights = reader.activation(caller), getattr(reader.node(caller), "args", [])[1:2]
            if run is not None and weights:
                reader.see(item_of(weights[0], key), run)  # this notes the ops that made it
            return reader.value(tensors[key]) if tensors is not None and key in tensors else None
    return None
