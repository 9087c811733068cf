"""The line that keeps a tensor: `losses.append(loss)`, `self.bank[name] = features`, `total += loss`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.diagnosis.findings import Site
from devtrace.source.flow import binds, path_of, statements, targets
from devtrace.source.matching import called_name, calls_in, chain, names_in, owner_of
from devtrace.source.parsing import Source

ADDS: Final = frozenset(("append", "appendleft", "add", "extend", "insert", "put", "setdefault", "update"))
Way = Literal["is", "put", "added", "carried"]
"""How a statement keeps something by `x`.

    is        x = f()
    put       x.append(y), x[k] = y
    added     x += y
    carried   x = f(x)
"""
_WAYS: Final[tuple[Way, ...]] = ("is", "put", "added", "carried")


@dataclass(frozen=True)
class Keeper:
    """A statement that keeps `value` by a name, in one `how`; `runs_backward`: it is differentiated later."""

    source: Source
    statement: ast.stmt
    value: ast.expr
    how: Way
    runs_backward: bool
    site: Site

    @property
    def adds(self) -> bool:
        """Return whether there is more of it each time."""
        return self.how != "is"

    @property
    def code(self) -> Code:
        return Code(self.source, self.site)


def keeper(queries: TraceQueries, name: str, scope: tuple[str, str, int]) -> Keeper | None:
    """Return the last statement that puts something into what a name is of, else that gives the name its value."""
    found: list[tuple[int, int, Source, ast.stmt, ast.expr]] = []
    for source, body, path in _bodies(queries, name, scope):
        for statement in statements(body):
            way, value = _keeps(statement, path)
            if value is not None:
                found.append((_WAYS.index(way), source.span(statement).line, source, statement, value))
    if not found:
        return None
    way_, _, source, statement, value = max(found, key=lambda each: each[:2])
    function = source.function(statement) or source.tree
    runs = name.rpartition(".")[2] in _differentiated(function)
    like = Site(source.file, 0, cell=_cell(queries, source.file), cell_id=_cell_id(queries, source.file))
    return Keeper(source, statement, value, _WAYS[way_], runs, queries.site_in(source, statement, like))


def _bodies(queries: TraceQueries, name: str, scope: tuple[str, str, int]) -> Iterator[tuple[Source, ast.AST, str]]:
    """Yield the bodies in which a name may be given its value: of a variable its own, of an attribute any class's."""
    file, function, first = scope
    if "." not in name:
        source = queries.read(file, max(first, 1)) if file else None
        if source is not None:
            body = next((each for each in source.functions if function and _begins(source, each) == first), None)
            yield source, body or source.tree, name
            for other in source.functions:
                is_inside = body is None or (other is not body and body in source.ancestors(other))
                if is_inside and not any(name in binds(each) for each in statements(other)):
                    yield source, other, name
        return
    attribute = name[name.index(".") :]
    files = dict.fromkeys([file, *(block.file for block in queries.trace.sources)])
    for source in (found for each in files if each and (found := queries.read(each, 1)) is not None):
        for function_ in source.functions:
            yield source, function_, attribute
        yield source, source.tree, name


def _begins(source: Source, function: ast.AST) -> int:
    decorators = getattr(function, "decorator_list", [])
    return min(source.span(each).line for each in (function, *decorators))


def _keeps(statement: ast.stmt, path: str) -> tuple[Way, ast.expr | None]:
    """Return how a statement keeps something by a name, and what."""
    match statement:
        case ast.Expr(value=ast.Call(args=[*_, ast.expr() as last]) as call) if called_name(call) in ADDS:
            owner = owner_of(call)
            if owner is not None and _is_in(owner, path):
                return "put", last
        case ast.AugAssign(target=target, value=value) if _is_in(target, path):
            return "added", value
    for given in targets(statement):
        parts = given.node.elts if isinstance(given.node, ast.Tuple | ast.List) else [given.node]
        for part in parts:
            if _is_in(part, path) and not given.loops:
                if not _fits(path_of(part), path):
                    return "put", given.value
                return ("carried" if path.rpartition(".")[2] in names_in(given.value) else "is"), given.value
    return "is", None


def _is_in(node: ast.AST, path: str) -> bool:
    """Return whether code names what a path does, or an item of it: `log["loss"]` of log."""
    return any(_fits(path_of(part), path) for part in chain(node))


def _fits(written: str, path: str) -> bool:
    return bool(written) and (written == path or (path.startswith(".") and written.endswith(path)))


def _differentiated(function: ast.AST) -> set[str]:
    """Return the variables that lead to what a function runs backward through."""
    roots = [call for call in calls_in(function) if called_name(call) == "backward"]
    found = names_in(*roots)
    given = [(names_in(each.node), names_in(each.value)) for part in statements(function) for each in targets(part)]
    given += [
        (names_in(each.target), names_in(each.value)) for each in statements(function) if type(each) is ast.AugAssign
    ]
    for _ in given:
        new = {name for names, values in given if names & found for name in values} - found
        if not new:
            break
        found |= new
    return found


def _cell(queries: TraceQueries, file: str) -> int | None:
    live = queries.live.cells if queries.live is not None else ()
    return next((cell.count for cell in live if cell.file == file), None)


def _cell_id(queries: TraceQueries, file: str) -> str:
    live = queries.live.cells if queries.live is not None else ()
    return next((cell.cell_id for cell in live if cell.file == file), "")
