"""Whether an expression stands for several values, by its use or by the function that returns it.

torch.cat(parts(x))      f(*parts(x))      sum(losses(x).values())
def parts(x): return x, x + 1
"""

import ast
from collections.abc import Iterator
from inspect import CO_GENERATOR
from types import CodeType
from typing import Final

from devtrace.source.defuse import statements
from devtrace.source.matching import called_name, match_code, only
from devtrace.source.parsing import NO_CODE, Source, read
from devtrace.source.safe_values import Scope, class_dict, classes_of, evaluate, run_by
from devtrace.source.vocabulary import TAKES_ITEMS

_DISPLAYS: Final = (ast.Tuple, ast.List, ast.Set, ast.Dict, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def means_several(node: ast.expr, source: Source, scope: Scope) -> bool:
    """Return whether an expression stands for several values: `parts(x)` in `torch.cat(parts(x))`."""
    if _is_used_as_several(node, source):
        return True
    call = match_code("$function(...)", node)
    code = code_run_by(call["function"], scope) if call is not None else None
    if code is None:
        return False
    return bool(code.co_flags & CO_GENERATOR) or any(isinstance(result, _DISPLAYS) for _, result in returned_by(code))


def _is_used_as_several(node: ast.expr, source: Source) -> bool:
    match source.parent(node):
        case ast.Starred():
            return True
        case ast.Call(func=ast.Name(id="sum"), args=[first, *_]):
            return first is node
        case ast.Call(args=[first, *others]) as call:
            name = called_name(call)
            return (first is node and name in TAKES_ITEMS) or (name == "reduce" and others[:1] == [node])
    return False


def code_run_by(function: ast.expr, scope: Scope) -> CodeType | None:
    """Return the code that a call of a function runs; for a call of a module that of its `forward`."""
    value = evaluate(function, scope)
    forwards = (class_dict(kind).get("forward") for kind in classes_of(type(value)))
    method = next(run_by(next((forward for forward in forwards if forward is not None), value)), None)
    return method.__code__ if method is not None else None


def returned_in(body: ast.AST) -> list[ast.expr]:
    """Return the expressions that a function returns."""
    if isinstance(body, ast.Lambda):
        return [body.body]
    return [node.value for node in only(ast.Return, statements(body)) if node.value is not None]


def returned_by(code: CodeType) -> Iterator[tuple[Source, ast.expr]]:
    """Yield the expressions that a function returns, each with its source."""
    source = read(code.co_filename)
    yield from ((source, result) for result in returned_in(source.function_of_code(code) or NO_CODE))
