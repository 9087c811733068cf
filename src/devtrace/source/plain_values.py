"""Numbers and texts computed from others, `f"cuda:{rank}"`, evaluated without running code."""

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

from devtrace.source.matching import called_name
from devtrace.source.safe_values import Scope, evaluate

_OPERATORS: Final[Mapping[type[ast.operator], Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Sub: operator.sub,
}
_CALLS: Final[Mapping[str, Callable[[Any], Any]]] = {"int": int, "str": str}


def plain(node: ast.AST, scope: Scope) -> str | int | None:
    """Return the value of code that computes a text or number from looked-up ones."""
    try:
        value = _value(node, scope)
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return None
    return value if type(value) in (str, int) else None


def _value(node: ast.AST, scope: Scope) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.JoinedStr(values=parts):
            return "".join(str(_known(part, scope)) for part in parts)
        case ast.FormattedValue(value=inner, format_spec=None):
            return _known(inner, scope)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_known(left, scope), _known(right, scope))
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str() as text), attr="format"), keywords=[]):
            return text.format(*(_known(each, scope) for each in node.args))
        case ast.Call(func=ast.Name(), args=[given], keywords=[]) if called_name(node) in _CALLS:
            return _CALLS[called_name(node)](_known(given, scope))
    return evaluate(node, scope)


def _known(node: ast.AST, scope: Scope) -> str | int:
    value = plain(node, scope)
    if value is None:
        raise LookupError
    return value
