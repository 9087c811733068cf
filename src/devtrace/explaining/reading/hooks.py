"""Effects of a module's hooks on its inputs and outputs, read from their source: none of them runs."""

import ast
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from devtrace.explaining.reading.reader import Reader
from devtrace.explaining.reading.returned_calls import CallInputs, arguments, function_of, results_of, run_of, stores_at
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


def _hooks_around(module: Any, *, before: bool) -> Iterator[tuple[Any, bool]]:
    """Yield the hooks that run before a module's forward, or after it, and whether each is given its keywords too."""
    yield from ((hook, False) for hook in list(_OF_ALL[before].values()))
    yield from hooks_of(module, before=before)


def arguments_of_forward(
    reader: Reader, module: Any, passed: CallInputs, activation: Activation
) -> tuple[CallInputs, list[Activation]]:
    """Return the arguments of a module's forward as its pre-hooks leave them, and the runs of these hooks."""
    runs: list[Activation] = []
    for hook, with_words in _hooks_around(module, before=True):
        runs.append(_hook_run(reader, hook, [KnownValue(module), *passed.to_hook(with_words=with_words)], activation))
        output = _replacement(reader, runs[-1])
        if with_words:
            output = output.item(0) if isinstance(output, Several) else None
        if output is not None:
            passed = passed._replace(values=list(output.items) if isinstance(output, Several) else [output])
    return passed, runs


def result_of_module(
    reader: Reader, module: Any, passed: CallInputs, output: Value | None, activation: Activation
) -> Value | None:
    """Return the result of a module's call: that of forward, or its replacement by a hook."""
    for hook, with_words in _hooks_around(module, before=False):
        values = [KnownValue(module), *passed.to_hook(with_words=with_words), output]
        output = _replacement(reader, _hook_run(reader, hook, values, activation)) or output
    return output


def definitions_by_hooks(
    reader: Reader, module: Any, name: str, names: list[str], call: ast.Call, activation: Activation
) -> Iterator[Definition]:
    """Yield the values that pre-hooks give a parameter of forward, from the last hook to the first."""
    _, runs = arguments_of_forward(reader, module, CallInputs.by(reader, call, activation), activation)
    for run in reversed(runs):
        for result in results_of(run):
            stored = (item for statement in statements(run.body) for _, item in stores_at(statement, name))
            yield from (Definition(item, (), run.at_node(item)) for item in stored)
            pair = match_code("($values, $words)", result.node)
            value = reader.see(pair["values"] if pair is not None else result.node, result.activation)
            if name in names:
                yield result._replace(position=(names.index(name),) if isinstance(value, Several) else ())


def _hook_run(reader: Reader, hook: Any, passed: list[Value | None], activation: Activation) -> Activation:
    """Return the run of a hook, also of one in a `functools.partial`; for a hook of torch's own a run of no code."""
    is_partial = type(hook) is partial
    function, before = function_of(hook.func if is_partial else hook)
    if function is None:
        return Activation.of_file(NO_SOURCE, {})
    values = [*before, *map(reader.value, hook.args if is_partial else ()), *passed]
    words = {key: reader.value(word) for key, word in (hook.keywords.items() if is_partial else ())}
    return run_of(reader, function, arguments(function, values, words), activation)


def _replacement(reader: Reader, run: Activation) -> Value | None:
    """Return what a hook returns in place of the arguments or the output; None if it returns nothing."""
    values = map(reader.read, results_of(run))
    return next((value for value in values if value is not None and getattr(value, "value", value) is not None), None)
