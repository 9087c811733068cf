"""The line that keeps a tensor: `losses.append(loss)`, `self.bank[name] = features`, `total += loss`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from inspect import CO_GENERATOR
from typing import Any, Final, Literal

from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.diagnosis.findings import Site
from devtrace.source.flow import COMPREHENSIONS, LOOPS, binds, parameters, path_of, paths_in, statements, targets
from devtrace.source.matching import (
    alone,
    called_name,
    called_names,
    calls_in,
    chain,
    is_read,
    keyword,
    listed,
    names_in,
    nodes_in,
    nodes_of,
    owner_of,
    written_out,
)
from devtrace.source.parsing import FunctionNode, Source
from devtrace.source.vocabulary import ADDS, READS, TAKES_OUT, TAKES_VALUES

Way = Literal["is", "drained", "put", "added", "carried"]
"""How a statement keeps something by `x`.

    is        x = f()
    drained   x = dict(f())
    put       x.append(y), x[k] = y, x = [y for ...]
    added     x += y
    carried   x = f(x)
"""
WRITTEN: Final = (ast.Tuple, ast.List, ast.Set, ast.Dict)
_NO_GRAPH: Final = READS | TAKES_VALUES - {"list", "sum", "tuple"} | {"detach"}
_MOST_OF_CODE: Final = 40
_WAYS: Final[tuple[Way, ...]] = ("is", "drained", "put", "added", "carried")


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

    @property
    def is_a_cache(self) -> bool:
        """Return whether the round, or function, that puts something there reads it as well."""
        around = self.round or self.source.function(self.statement)
        first = next(_paths_of(self.statement), "")
        return around is not None and first in self._read_in(around)

    @property
    def is_unread(self) -> bool:
        """Return whether nothing else in the file reads the name, but for the length or to load a state from it."""
        name = next(_paths_of(self.statement), "").rpartition(".")[2]
        return name not in {path.rpartition(".")[2] for path in self._read_in(self.source.tree)}

    def _read_in(self, tree: ast.AST) -> set[str]:
        """Return what code reads beside the statement, other than for its length, to load a state or to add to it."""
        calls = [*calls_in(tree)]
        owners = [owner for call in calls if called_name(call) in ADDS and (owner := owner_of(call)) is not None]
        measured = [part for call in calls if called_name(call) in ("len", "load_state_dict") for part in call.args]
        apart = set(nodes_of(ast.expr, self.statement, *owners, *measured))
        return {path_of(each) for each in nodes_of(ast.expr, tree) if is_read(each) and each not in apart} - {""}

    @property
    def is_bounded(self) -> bool:
        """Return whether the code names a bound, or takes out what it put in: `deque(maxlen=9)`, `del memory[0]`."""
        names, tree = set(_paths_of(self.statement)), self.source.tree
        owners = [owner_of(call) for call in calls_in(tree) if called_name(call) in TAKES_OUT]
        deleted = [part for each in nodes_of(ast.Delete, tree) for node in each.targets for part in chain(node)]
        if not names.isdisjoint(path_of(each) for each in (*owners, *deleted) if each is not None):
            return True
        given = [each for part in nodes_of(ast.stmt, tree) for each in targets(part) if path_of(each.node) in names]
        return any(keyword(call, "maxlen") is not None for each in given for call in calls_in(each.value))

    @property
    def round(self) -> ast.For | ast.While | None:
        """Return the loop of the function that the statement is in."""
        function = self.source.function(self.statement)
        loop = self.source.nearest(ast.For, self.statement) or self.source.nearest(ast.While, self.statement)
        return loop if loop is not None and self.source.function(loop) is function else None

    @property
    def is_each_round_backward(self) -> bool:
        return self.round is not None and "backward" in called_names(self.round)

    @property
    def is_of_rounds_alone(self) -> bool:
        """Return whether each round adds a loss of its own, and a backward pass after them runs through all."""
        once = self.runs_backward and not self.is_each_round_backward
        return once and (self.how == "added" or (self.how == "put" and not self._is_carried()))

    def _is_carried(self) -> bool:
        """Return whether what a round adds is computed from what the round before left; outside of a loop it may be."""
        if self.round is None:
            return True
        given = _given(*statements(self.round))
        needed = _with_what_gave(paths_in(self.value), given)
        made: set[str] = set()
        left = {name for names, _ in given for name in names} & needed
        for names, values in given:
            if values & left - made:
                return True
            made |= names
        return False


def keeper(queries: TraceQueries, name: str, scope: tuple[str, str, int]) -> Keeper | None:
    """Return the last statement that puts something into what a name is of, else that gives the name its value."""
    for bodies in _bodies(queries, name, scope):
        found: list[tuple[bool, int, int, Source, ast.stmt, ast.expr, Way, str]] = []
        for source, body, path in bodies:
            for statement in statements(body):
                way, value = _keeps(statement, path)
                if value is not None:
                    rank = (not has_no_graph(value), _rank(source, statement, way, path), source.span(statement).line)
                    found.append((*rank, source, statement, value, way, path))
        if found:
            *_, source, statement, value, way, path = max(found, key=lambda each: each[:3])
            function = source.tree if path[:1] == "." else source.function(statement) or source.tree
            runs = any(_fits(each, path) for each in _differentiated(function))
            return Keeper(source, statement, value, way, runs, _site(queries, source, statement))
    return None


def _rank(source: Source, statement: ast.stmt, way: Way, path: str) -> int:
    """Return the highest for what keeps most: `x = torch.cat(x)` after a loop is of what the loop put there."""
    function = source.function(statement)
    loops = (source.nearest(kind, statement) for kind in LOOPS)
    is_once = path[:1] != "." and all(loop is None or source.function(loop) is not function for loop in loops)
    return _WAYS.index("drained" if way == "carried" and is_once else way)


def being_made(queries: TraceQueries) -> tuple[str, Keeper] | None:
    """Return what a running line collects before it has a name: `[model(x) for x in loader]`, `dict(features())`."""
    in_generator = False
    for row, frame in queries.frames:
        found = queries.source_node(row)
        if found is None:
            continue
        source, node, statement = found.source, found.node, found.source.statement(found.node)
        parts = [each for each in source.ancestors(node) if isinstance(each, COMPREHENSIONS)]
        if statement is not None and (parts or (in_generator and not isinstance(statement, LOOPS))):
            code = parts[0] if parts else node
            value: Any = getattr(code, "elt", None) or getattr(code, "value", None) or node
            given = next(filter(None, (path_of(x) for each in targets(statement) for x in chain(each.node))), "")
            ran = {given, *names_in(statement)} if "backward" in called_names(statement) else {given}
            runs = bool(ran & _differentiated(source.function(statement) or source.tree))
            name = given or " ".join(source.segment(code).split())[:_MOST_OF_CODE]
            how: Way = "put" if parts else "drained"
            return name, Keeper(source, statement, value, how, runs, _site(queries, source, statement))
        in_generator = bool(frame.f_code.co_flags & CO_GENERATOR)
    return None


def _bodies(
    queries: TraceQueries, name: str, scope: tuple[str, str, int]
) -> Iterator[Iterator[tuple[Source, ast.AST, str]]]:
    """Yield where a name may be given its value: a variable in its own function, an attribute in any, by more of it."""
    file, _, first = scope
    if "." not in name:
        source = queries.read(file, max(first, 1)) if file else None
        if source is not None:
            yield _of_variable(source, name, scope)
        return
    _, *parts = [part for part in name.split(".") if part != "*"]
    files = dict.fromkeys([file, *(block.file for block in queries.trace.sources)])
    sources = [found for each in files if each and (found := queries.read(each, 1)) is not None]
    tails = (".".join(["", *parts[at:]]) for at in range(len(parts)))
    for path in dict.fromkeys([*tails, *(f".{part}" for part in parts)]):
        yield ((source, each, path) for source in sources for each in (*_functions(source), source.tree))


def _of_variable(source: Source, name: str, scope: tuple[str, str, int]) -> Iterator[tuple[Source, ast.AST, str]]:
    """Yield the function that a variable is of, seen from one, and those that share it."""
    begun = source.body_at(scope[2], scope[1].rpartition(".")[2]) or source.tree
    around = (each for each in source.ancestors(begun) if isinstance(each, FunctionNode))
    body = next((each for each in around if _binds(each, name)), source.tree)
    yield source, body, name
    for other in _functions(source):
        if other is not body and body in source.ancestors(other) and not _binds(other, name):
            yield source, other, name


def _binds(function: ast.AST, name: str) -> bool:
    return name in parameters(function, starred=True) or any(name in binds(each) for each in statements(function))


def _functions(source: Source) -> list[FunctionNode]:
    return [node for node in nodes_in(source.tree) if isinstance(node, FunctionNode)]


def _keeps(statement: ast.stmt, path: str) -> tuple[Way, ast.expr | None]:
    """Return how a statement keeps something by a name, and what."""
    match statement:
        case ast.Expr(value=ast.Call(args=[*_, ast.expr() as last]) as call) if called_name(call) in ADDS:
            owner = owner_of(call)
            if owner is not None and _is_in(owner, path):
                return "put", _only(last) if called_name(call) == "extend" else last
        case ast.AugAssign(target=target, value=value) if _is_in(target, path):
            return "added", _only(value)
    for given in targets(statement):
        for part in listed(given.node):
            if _is_in(part, path) and not given.loops:
                if not _fits(path_of(part), path):
                    return "put", given.value
                return _way(given.value, path)
    return "is", None


def _way(value: ast.expr, path: str) -> tuple[Way, ast.expr]:
    """Return how a name gets a value that may be made of its own: `x = x + [y]`, `x = f(x)`."""
    match value:
        case ast.BinOp(left=left, op=ast.Add(), right=right) if _fits(path_of(left), path):
            return "added", _only(right)
        case ast.ListComp(elt=part) | ast.SetComp(elt=part) | ast.DictComp(value=part):
            return "put", part
    return ("carried" if any(_fits(path_of(each), path) for each in nodes_of(ast.expr, value)) else "is"), value


def _only(value: ast.expr) -> ast.expr:
    """Return `y` of `[y]`, which is added to a list."""
    parts = listed(value)
    return parts[0] if len(parts) == 1 else value


def _is_in(node: ast.AST, path: str) -> bool:
    """Return whether code names what a path does, or an item of it: `log["loss"]` of log."""
    return any(_fits(path_of(part), path) for part in chain(node))


def _fits(written: str, path: str) -> bool:
    return bool(written) and (written == path or (path.startswith(".") and written.endswith(path)))


def _differentiated(function: ast.AST) -> set[str]:
    """Return the variables and attributes that lead to what a function runs backward through."""
    roots = [call for call in calls_in(function) if called_name(call) == "backward"]
    given = _given(*nodes_of(ast.stmt, function))
    given += [(paths_in(each.target), paths_in(each.value)) for each in nodes_of(ast.AugAssign, function)]
    return _with_what_gave(paths_in(*roots), given)


def _given(*bodies: ast.stmt) -> list[tuple[set[str], set[str]]]:
    return [(paths_in(each.node), paths_in(each.value)) for part in bodies for each in targets(part)]


def _with_what_gave(paths: set[str], given: list[tuple[set[str], set[str]]]) -> set[str]:
    """Return paths with all that they were computed from."""
    while more := {name for names, values in given if names & paths for name in values} - paths:
        paths = paths | more
    return paths


def _paths_of(statement: ast.stmt) -> Iterator[str]:
    """Yield what a statement puts something into: `self.bank` of `self.bank[name] = x`."""
    owner = owner_of(alone(statement))
    for node in [owner] if owner is not None else [each.node for each in targets(statement)]:
        yield from (path for each in chain(node) if (path := path_of(each)))


def parts_of(value: ast.expr) -> Iterator[ast.expr]:
    """Yield the parts of what a container in code has in it, else what a comprehension makes, else the code itself."""
    if isinstance(value, WRITTEN):
        yield from (inner for part in written_out(value) for inner in parts_of(part))
    else:
        yield from written_out(value) or [value]


def has_no_graph(value: ast.expr) -> bool:
    """Return whether code gives a number, or what has no graph: `loss.item()`, `float(loss)`, `loss.detach()`."""
    return isinstance(value, ast.Constant) or called_name(value) in _NO_GRAPH


def _site(queries: TraceQueries, source: Source, statement: ast.stmt) -> Site:
    cells = queries.snapshot.cells
    count, id = next(((cell.number, cell.cell_id) for cell in cells if cell.file == source.file), (None, ""))
    return Code(source, Site(source.file, 0, cell=count, cell_id=id)).site_of(statement)
