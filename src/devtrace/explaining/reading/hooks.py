"""Effects of a module's hooks on its inputs and outputs, read from their source: none of them runs."""

import ast
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from devtrace.explaining.reading.reader import Reader
from devtrace.explaining.reading.returned_calls import Given, arguments, function_of, put_under, results_of, run_of
from devtrace.explaining.reading.values import Activation, Definition, KnownValue, Several, Value
from devtrace.runtime.torch_names import take
from devtrace.source.defuse import statements
from devtrace.source.matching import match_code
from devtrace.source.object_walk import hooks_of
from devtrace.source.parsing import NO_SOURCE

_OF_ALL: Final[dict[bool, dict[int, Any]]] = {
    True: take("nn.modules.module._global_forward_pre_hooks", "modules", instead={}),
    False: take("nn.modules.module._global_forward_hooks", "modules", instead={}),
}
"""Hooks of all modules, before their forward and after it; torch runs them before a module's own."""


def _around(module: Any, *, before: bool) -> Iterator[tuple[Any, bool]]:
    """Yield the hooks that run before a module's forward, or after it, and whether each is given its keywords too."""
    yield from ((hook, False) for hook in list(_OF_ALL[before].values()))
    yield from hooks_of(module, before=before)


def given_to_forward(
    reader: Reader, module: Any, given: Given, activation: Activation
) -> tuple[Given, list[Activation]]:
    """Return the arguments of a module's forward after its pre-hooks, with the runs of these."""
    runs: list[Activation] = []
    for hook, with_words in _around(module, before=True):
        runs.append(_run(reader, hook, [KnownValue(module), *given.to_hook(with_words=with_words)], activation))
        made = _made(reader, runs[-1])
        if with_words:
            made = made.item(0) if isinstance(made, Several) else None
        if made is not None:
            given = given._replace(values=list(made.items) if isinstance(made, Several) else [made])
    return given, runs


def given_by_module(
    reader: Reader, module: Any, given: Given, made: Value | None, activation: Activation
) -> Value | None:
    """Return the result of a module's call: that of forward, or its replacement by a hook."""
    for hook, with_words in _around(module, before=False):
        values = [KnownValue(module), *given.to_hook(with_words=with_words), made]
        made = _made(reader, _run(reader, hook, values, activation)) or made
    return made


def given_for(
    reader: Reader, module: Any, name: str, names: list[str], call: ast.Call, activation: Activation
) -> Iterator[Definition]:
    """Yield the values that pre-hooks give a parameter of forward, from the last hook to the first."""
    _, runs = given_to_forward(reader, module, Given.by(reader, call, activation), activation)
    for run in reversed(runs):
        for result in results_of(run):
            stored = (value for each in statements(run.body) for _, value in put_under(each, name))
            yield from (Definition(each, (), run.at_node(each)) for each in stored)
            pair = match_code("($values, $words)", result.node)
            made = reader.see(pair["values"] if pair is not None else result.node, result.activation)
            if name in names:
                yield result._replace(position=(names.index(name),) if isinstance(made, Several) else ())


def _run(reader: Reader, hook: Any, given: list[Value | None], activation: Activation) -> Activation:
    """Return a hook's run, also within a `functools.partial`; for torch's own hooks one of no code."""
    is_partial = type(hook) is partial
    function, before = function_of(hook.func if is_partial else hook)
    if function is None:
        return Activation.of_file(NO_SOURCE, {})
    values = [*before, *map(reader.value, hook.args if is_partial else ()), *given]
    words = {key: reader.value(each) for key, each in (hook.keywords.items() if is_partial else ())}
    return run_of(reader, function, arguments(function, values, words), activation)


def _made(reader: Reader, run: Activation) -> Value | None:
    """Return a hook's replacement for its input; None if it returns nothing."""
    values = map(reader.read, results_of(run))
    return next((each for each in values if each is not None and getattr(each, "value", each) is not None), None)
