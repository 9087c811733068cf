"""Which cells of a notebook have to run again once some of them have changed: those that go by what these give.

cells_to_run(["net = Net()", "x = 3", "net.to(device)", "net(x)"], {0})      # [0, 2, 3]
"""

import ast
import builtins
import re
from collections.abc import Collection, Sequence
from typing import Final

from devtrace.source.flow import binds, statements
from devtrace.source.matching import chain, names_in, nodes_of, owner_of

_MAGIC: Final = re.compile(r"^(\s*)[%!?].*$", re.MULTILINE)
_BUILTIN: Final = frozenset(dir(builtins))


def cells_to_run(sources: Sequence[str], changed: Collection[int]) -> list[int]:
    """Return the indexes of the cells that have changed, and of those below that read a name which these give."""
    given: set[str] = set()
    found = []
    for at, source in enumerate(sources):
        tree = _tree(source)
        if at in changed or (tree is not None and not given.isdisjoint(names_in(tree))):
            found.append(at)
            given |= _given(tree) if tree is not None else set()
    return found


def _tree(source: str) -> ast.Module | None:
    try:
        return ast.parse(_MAGIC.sub(r"\1pass", source))
    except (SyntaxError, ValueError):
        return None


def _given(tree: ast.Module) -> set[str]:
    """Return the names that a cell binds, and those whose objects it changes: `net.head = ...`, `net.to(device)`."""
    bound = {name for statement in statements(tree) for name in binds(statement)}
    stored = [*nodes_of(ast.Attribute, tree), *nodes_of(ast.Subscript, tree)]
    changed: list[ast.AST] = [node for node in stored if type(getattr(node, "ctx", None)) is ast.Store]
    changed += [node.value for node in nodes_of(ast.Expr, tree) if owner_of(node.value) is not None]
    return (bound | {_root(node) for node in changed}) - _BUILTIN - {""}


def _root(node: ast.AST) -> str:
    return getattr(list(chain(node))[-1], "id", "")
