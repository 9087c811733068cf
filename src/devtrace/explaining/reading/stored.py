"""Statements that put something into a live container: `cache[key] = x`, `cache.append(x)`."""

import ast
from collections.abc import Iterator
from typing import Any, Final

from devtrace.explaining.reading.activation import Activation, Definition
from devtrace.explaining.reading.reader import Reader
from devtrace.explaining.reading.values import Known
from devtrace.source.flow import moves_itself, statements, targets
from devtrace.source.safe_values import evaluate

_ADDING: Final = ("append", "add", "insert", "appendleft")


def stored_in(reader: Reader, run: Activation, owner: Any) -> Iterator[Definition]:
    """Yield what a run's statements put into this very container: `cache[key] = x`, `cache.append(x)`."""
    for statement in statements(run.body):
        for target, value, loops, _ in targets(statement):
            if isinstance(target, ast.Subscript) and not loops and _is(reader, target.value, owner, run):
                yield Definition(value, (), run.at_node(statement), is_own_move=moves_itself(value, target))
        call = statement.value if isinstance(statement, ast.Expr) else None
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or not call.args:
            continue
        if call.func.attr in _ADDING and _is(reader, call.func.value, owner, run):
            yield Definition(call.args[-1], (), run.at_node(statement))


def _is(reader: Reader, node: ast.expr, owner: Any, run: Activation) -> bool:
    if run.scope is not None:
        return evaluate(node, run.scope) is owner
    value = reader.see(node, run)
    return isinstance(value, Known) and value.value is owner
