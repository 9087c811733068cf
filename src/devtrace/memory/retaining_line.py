"""The line that keeps a tensor: `losses.append(loss)`, `self.bank[name] = features`, `total += loss`."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from inspect import CO_GENERATOR
from operator import attrgetter
from typing import Any, Final, Literal, Self

from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.evidence.trace_queries import NOWHERE, TraceQueries
from devtrace.diagnosis.findings import Site
from devtrace.source.defuse import LOOPS, binds, loops_around, path_of, paths_in, read_first, statements, targets
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
from devtrace.source.parsing import NO_SOURCE, FunctionNode, Source, parameters
from devtrace.source.vocabulary import ADDS, READS, TAKES_OUT, TAKES_VALUES

Way = Literal["is", "drained", "put", "added", "carried"]
"""How a statement keeps something by `x`.

    is        x = f()
    drained   x = dict(f())
    put       x.append(y), x[k] = y, x = [y for ...]
    added     x += y
    carried   x = f(x)
"""
Kept = tuple[Way, ast.expr]
WRITTEN: Final = (ast.Tuple, ast.List, ast.Set, ast.Dict)
_NO_GRAPH: Final = READS | TAKES_VALUES - {"list", "sum", "tuple"} | {"detach"}
_MOST_OF_CODE: Final = 40
_WAYS: Final[tuple[Way, ...]] = ("is", "drained", "put", "added", "carried")


@dataclass(frozen=True)
class Keeper(Code):
    """A statement that keeps `value` by a path, `losses` or `.losses` of any object, in one `how`."""

    statement: ast.stmt
    value: ast.expr
    how: Way
    path: str

    @classmethod
    def of(cls, queries: TraceQueries, source: Source, statement: ast.stmt, kept: Kept, path: str) -> Self:
        cells = ((cell.number, cell.cell_id) for cell in queries.snapshot.cells if cell.file == source.file)
        count, id = next(cells, (None, ""))
        code = Code(source, Site(source.file, 0, cell=count, cell_id=id))
        return cls(source, code.site_of(statement), statement, *kept[::-1], path)

    @property
    def adds(self) -> bool:
        """Return whether there is more of it each time."""
        return self.how != "is"

    @property
    def weight(self) -> tuple[bool, int, int]:
        """Return more for what keeps most: `x = torch.cat(x)` after a loop is of what the loop put there."""
        is_once = self.how == "carried" and self.path[:1] != "." and self.round is None
        has_no_graph = isinstance(self.value, ast.Constant) or called_name(self.value) in _NO_GRAPH
        return not has_no_graph, _WAYS.index("drained" if is_once else self.how), self.site.line

    @cached_property
    def runs_backward(self) -> bool:
        """Return whether it is differentiated later."""
        function = self.source.function(self.statement) if self.path[:1] != "." else None
        found = _differentiated(function or self.source.tree)
        own = names_in(self.statement) if "backward" in called_names(self.statement) else set()
        return bool(own & found) or any(_fits(each, self.path) for each in found)

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
    def round(self) -> ast.For | ast.AsyncFor | ast.While | None:
        """Return the loop of the function that the statement is in."""
        return next(iter(loops_around(self.source, self.statement)), None)

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
        left = _with_what_gave(paths_in(self.value), given) & {name for names, _ in given for name in names}
        return not read_first(self.round.body).isdisjoint(name.partition(".")[0] for name in left)


def keeper(queries: TraceQueries, name: str, scope: tuple[str, str, int]) -> Keeper | None:
    """Return the last statement that puts something into what a name is of, else that gives the name its value."""
    for places in _places(queries, name, scope):
        found = (
            Keeper.of(queries, source, statement, kept, path)
            for source, body, path in places
            for statement in statements(body)
            for kept in _keeps(statement, path)
        )
        if (most := max(found, key=attrgetter("weight"), default=None)) is not None:
            return most
    return None


def being_made(queries: TraceQueries) -> tuple[str, Keeper] | None:
    """Return what a running line collects before it has a name: `[model(x) for x in loader]`, `dict(features())`."""
    in_generator = False
    for row, frame in queries.frames:
        found = queries.source_node(row)
        if found is NOWHERE:
            continue
        source, node, statement = found.source, found.node, found.statement
        parts = [each for each in source.ancestors(node) if hasattr(each, "generators")]
        if parts or (in_generator and not isinstance(statement, LOOPS)):
            code = parts[0] if parts else node
            value: Any = getattr(code, "elt", None) or getattr(code, "value", None) or node
            path = next(filter(None, (path_of(x) for each in targets(statement) for x in chain(each.node))), "")
            name = path or " ".join(source.segment(code).split())[:_MOST_OF_CODE]
            return name, Keeper.of(queries, source, statement, ("put" if parts else "drained", value), path)
        in_generator = bool(frame.f_code.co_flags & CO_GENERATOR)
    return None


def _places(
    queries: TraceQueries, name: str, scope: tuple[str, str, int]
) -> Iterator[Iterable[tuple[Source, ast.AST, str]]]:
    """Yield where a name may be given its value: a variable in its own function, an attribute in any, by more of it."""
    file, _, first = scope
    if "." not in name:
        source = queries.read(file, max(first, 1)) if file else NO_SOURCE
        yield [(source, each, name) for each in _sharing(source, name, scope)]
        return
    parts = [part for part in name.split(".")[1:] if part != "*"]
    files = dict.fromkeys([file, *(block.file for block in queries.trace.sources)])
    sources = [queries.read(each, 1) for each in files if each]
    tails = (".".join(["", *parts[at:]]) for at in range(len(parts)))
    for path in dict.fromkeys([*tails, *(f".{part}" for part in parts)]):
        yield ((source, each, path) for source in sources for each in (*_functions(source), source.tree))


def _sharing(source: Source, name: str, scope: tuple[str, str, int]) -> Iterator[ast.AST]:
    """Yield the function that a variable is of, seen from one, and those that share it."""
    begun = source.function_named_at(scope[2], scope[1].rpartition(".")[2]) or source.tree
    around = (each for each in source.ancestors(begun) if isinstance(each, FunctionNode))
    body = next((each for each in around if _binds(each, name)), source.tree)
    yield body
    inner = (each for each in _functions(source) if each is not body and body in source.ancestors(each))
    yield from (each for each in inner if not _binds(each, name))


def _binds(function: ast.AST, name: str) -> bool:
    return name in parameters(function, starred=True) or any(name in binds(each) for each in statements(function))


def _functions(source: Source) -> list[FunctionNode]:
    return [node for node in nodes_in(source.tree) if isinstance(node, FunctionNode)]


def _keeps(statement: ast.stmt, path: str) -> Iterator[Kept]:
    """Yield how a statement keeps something by a name, and what."""
    match statement:
        case ast.Expr(value=ast.Call(args=[*_, ast.expr() as last]) as call) if called_name(call) in ADDS:
            if (owner := owner_of(call)) is not None and _is_in(owner, path):
                yield "put", _only(last) if called_name(call) == "extend" else last
                return
        case ast.AugAssign(target=target, value=value) if _is_in(target, path):
            yield "added", _only(value)
            return
    given = ((part, each) for each in targets(statement) for part in listed(each.node) if not each.loops)
    for part, each in given:
        if _is_in(part, path):
            yield _way(each.value, path) if _fits(path_of(part), path) else ("put", each.value)
            return


def _way(value: ast.expr, path: str) -> Kept:
    """Return how a name gets a value that may be made of its own: `x = x + [y]`, `x = f(x)`."""
    match value:
        case ast.BinOp(left=left, op=ast.Add(), right=right) if _fits(path_of(left), path):
            return "added", _only(right)
        case ast.ListComp(elt=part) | ast.SetComp(elt=part) | ast.DictComp(value=part):
            return "put", part
    return ("carried" if any(_fits(each, path) for each in paths_in(value)) else "is"), value


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
