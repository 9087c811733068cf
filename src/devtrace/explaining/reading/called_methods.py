"""Methods that the live frames have called on an object: what they gave it is newer than what its constructor did."""

import ast
from collections.abc import Iterator
from types import FunctionType
from typing import Final, NamedTuple

from devtrace.explaining.reading.activation import Activation
from devtrace.explaining.reading.reader import Reader
from devtrace.explaining.reading.runs import arguments
from devtrace.explaining.reading.values import Value
from devtrace.source.flow import FUNCTIONS
from devtrace.source.matching import called_name, calls_in
from devtrace.source.safe_values import evaluate

_MAY_NOT_RUN: Final = (ast.If, ast.IfExp, ast.BoolOp, ast.ExceptHandler, *FUNCTIONS)


class Called(NamedTuple):
    """Last run of a method: `order` is 1 for the first that ran.

    `call` is there if a live frame made it itself, in `run`.
    """

    order: int
    call: ast.Call | None
    run: Activation

    def given(self, reader: Reader, function: FunctionType) -> dict[str, Value | None]:
        """Return what the call gave the method's parameters, as far as it can be read."""
        if self.call is None or any(isinstance(each, ast.Starred) for each in self.call.args):
            return {}
        values = [None, *(reader.see(each, self.run) for each in self.call.args)]
        words = {word.arg: reader.see(word.value, self.run) for word in self.call.keywords if word.arg}
        return {name: value for name, value in arguments(function, values, words).items() if value is not None}


def calls_so_far(reader: Reader, owner: object, methods: dict[str, FunctionType]) -> dict[str, Called]:
    """Return the last call of each method that has surely run on an object, those that others call among them."""
    last: dict[str, Called] = {}
    calls = [pair for run in [*reader.user_activations()][::-1] for pair in _calls_above(run, owner, methods)]
    for order, (call, run) in enumerate(calls, start=1):
        reached, new = set[str](), {called_name(call)}
        while new:
            reached |= new
            new = {each for name in new for each in methods[name].__code__.co_names if each in methods} - reached
        last.update(dict.fromkeys(reached, Called(order, None, run)))
        last[called_name(call)] = Called(order, call, run)
    return last


def surely_runs(node: ast.AST, run: Activation) -> bool:
    """Return whether no branch stands between a node and the function that it is in."""
    for outer in run.source.ancestors(node):
        if outer is run.body:
            return True
        if isinstance(outer, _MAY_NOT_RUN):
            return False
    return True


def _calls_above(
    run: Activation, owner: object, methods: dict[str, FunctionType]
) -> Iterator[tuple[ast.Call, Activation]]:
    """Yield the calls of methods that a frame has made on an object, in the order of their lines."""
    if run.scope is None:
        return
    calls = [call for call in calls_in(run.body) if called_name(call) in methods]
    for call in sorted(calls, key=lambda call: run.source.span(call).line):
        if not isinstance(call.func, ast.Attribute) or run.source.span(call).end_line >= run.line:
            continue
        if evaluate(call.func.value, run.scope) is owner and surely_runs(call, run):
            yield call, run.at_node(call)
