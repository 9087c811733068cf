"""Which cells of a notebook have to run again once some of them have changed, and which others have to run for that.

cells_to_run(["net = Net()", "x = 3", "net(x)"], {0})            # [0, 2]
cells_needed(["net = Net()", "x = 3", "net(x)"], {0, 2}, {})     # [1]: this kernel has no x yet
"""

import ast
import builtins
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from devtrace.source.defuse import binds, read_first, statements
from devtrace.source.matching import chain, is_given, names_in, nodes_of, owner_of
from devtrace.source.parsing import parse

_MAGIC: Final = re.compile(r"^(\s*)[%!?].*$", re.MULTILINE)
_SETTING: Final = re.compile(
    r"^%(load_ext|reload_ext|devtrace(?! fix)|env|set_env|cd|config|matplotlib|pylab|autoreload|run)\b", re.MULTILINE
)
"""Magics on which later cells depend, although they read no name of theirs."""
_INPUT: Final = re.compile(r"_i\d+")
"""IPython's names for what ran."""
_BUILTIN: Final = frozenset(dir(builtins))


def cells_to_run(sources: Sequence[str], changed: Collection[int]) -> list[int]:
    """Return the indexes of changed cells, and of cells below them that read a name which they write."""
    written: set[str] = set()
    to_run = []
    for index, tree in enumerate(map(_tree, sources)):
        if index in changed or not written.isdisjoint(names_in(tree)):
            to_run.append(index)
            written |= _written_names(tree)
    return to_run


def cells_needed(sources: Sequence[str], to_run: Collection[int], namespace: Mapping[str, object]) -> list[int]:
    """Return the indexes of other cells that must run first, in a kernel with this namespace.

    They write what the cells to run read, and have changed since they ran, or read what a changed cell writes.
    """
    ran = texts_of(namespace)
    new = {index for index, source in enumerate(sources) if source.strip() not in ran}
    stale = {*cells_to_run(sources, new)}
    needed, wanted = [], set[str]()
    for index in range(max(to_run, default=-1), -1, -1):
        tree = _tree(sources[index])
        written = _written_names(tree)
        useful = wanted - _BUILTIN if "*" in written else wanted & written
        is_setting = index in new and _SETTING.search(sources[index]) is not None
        is_needed = is_setting or (index in stale and bool(useful)) or not useful <= namespace.keys()
        if index not in to_run and is_needed:
            needed.append(index)
        is_run = index in to_run or is_needed
        wanted = read_first(tree.body, wanted) if is_run else wanted.difference(*map(binds, tree.body))
    return needed[::-1]


def texts_of(namespace: Mapping[str, object]) -> set[str]:
    """Return the texts of the cells that a kernel has run, without blank lines around them."""
    return {str(text).strip() for name, text in dict(namespace).items() if _INPUT.fullmatch(name)}


def _tree(source: str) -> ast.Module:
    """Return a cell's syntax tree without its line magics; an empty one if the cell is no Python."""
    parsed = parse(_MAGIC.sub(r"\1pass", source))
    return parsed.tree if parsed is not None else ast.Module([], [])


def _written_names(tree: ast.Module) -> set[str]:
    """Return the names that a cell binds, and those whose objects it changes: `net.head = ...`, `net.to(device)`."""
    bound = {name for statement in statements(tree) for name in binds(statement)}
    stored = [*nodes_of(ast.Attribute, tree), *nodes_of(ast.Subscript, tree)]
    changed: list[ast.AST] = [node for node in stored if is_given(node)]
    changed += [node.value for node in nodes_of(ast.Expr, tree) if owner_of(node.value) is not None]
    return (bound | {_root(node) for node in changed}) - _BUILTIN - {""}


def _root(node: ast.AST) -> str:
    return getattr(list(chain(node))[-1], "id", "")
