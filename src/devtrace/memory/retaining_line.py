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
    """A statement that keeps `value` under a path, `losses` or `.losses` of any object; `how` says in which way."""

    statement: ast.stmt
    value: ast.expr
    how: Way
    path: str

    @classmethod
    def of(cls, queries: TraceQueries, source: Source, statement: ast.stmt, kept: Kept, path: str) -> Self:
        cells = ((cell.number, cell.cell_id) for cell in queries.snapshot.cells if cell.file == source.file)
        number, cell_id = next(cells, (None, ""))
        code = Code(source, Site(source.file, 0, cell=number, cell_id=cell_id))
        how, value = kept
        return cls(source, code.site_of(statement), statement, value, how, path)

    @property
    def adds(self) -> bool:
        """Return whether the path keeps more each time that the statement runs."""
        return self.how != "is"

    @property
    def weight(self) -> tuple[bool, int, int]:
        """Return more for a statement that keeps more: `x = torch.cat(x)` after a loop keeps what the loop put."""
        is_once = self.how == "carried" and self.path[:1] != "." and self.round is None
        has_no_graph = isinstance(self.value, ast.Constant) or called_name(self.value) in _NO_GRAPH
        return not has_no_graph, _WAYS.index("drained" if is_once else self.how), self.site.line

    @cached_property
    def runs_backward(self) -> bool:
        """Return whether a backward pass runs through what is kept: `sum(losses).backward()`."""
        function = self.source.function(self.statement) if self.path[:1] != "." else None
        paths = _differentiated(function or self.source.tree)
        names = names_in(self.statement) if "backward" in called_names(self.statement) else set()
        return bool(names & paths) or any(_is_path(path, self.path) for path in paths)

    @property
    def is_a_cache(self) -> bool:
        """Return whether the loop, or function, that puts something there reads it as well."""
        around = self.round or self.source.function(self.statement)
        target = next(_targets_of(self.statement), "")
        return around is not None and target in self._paths_read_in(around)

    @property
    def is_unread(self) -> bool:
        """Return whether nothing else in the file reads the name, but for the length or to load a state from it."""
        name = next(_targets_of(self.statement), "").rpartition(".")[2]
        return name not in {path.rpartition(".")[2] for path in self._paths_read_in(self.source.tree)}

    def _paths_read_in(self, tree: ast.AST) -> set[str]:
        """Return the paths that other code reads, but for `len(x)`, `model.load_state_dict(x)` and `x.append(y)`."""
        calls = [*calls_in(tree)]
        owners = [owner for call in calls if called_name(call) in ADDS and (owner := owner_of(call)) is not None]
        arguments = [part for call in calls if called_name(call) in ("len", "load_state_dict") for part in call.args]
        ignored = set(nodes_of(ast.expr, self.statement, *owners, *arguments))
        return {path_of(node) for node in nodes_of(ast.expr, tree) if is_read(node) and node not in ignored} - {""}

    @property
    def is_bounded(self) -> bool:
        """Return whether the code names a bound, or takes out what it put in: `deque(maxlen=9)`, `del memory[0]`."""
        paths, tree = set(_targets_of(self.statement)), self.source.tree
        owners = [owner_of(call) for call in calls_in(tree) if called_name(call) in TAKES_OUT]
        deleted = [part for node in nodes_of(ast.Delete, tree) for target in node.targets for part in chain(target)]
        if not paths.isdisjoint(path_of(code) for code in (*owners, *deleted) if code is not None):
            return True
        assignments = (target for statement in nodes_of(ast.stmt, tree) for target in targets(statement))
        values = [target.value for target in assignments if path_of(target.node) in paths]
        return any(keyword(call, "maxlen") is not None for value in values for call in calls_in(value))

    @property
    def round(self) -> ast.For | ast.AsyncFor | ast.While | None:
        """Return the innermost loop around the statement in its function."""
        return next(iter(loops_around(self.source, self.statement)), None)

    @property
    def is_each_round_backward(self) -> bool:
        return self.round is not None and "backward" in called_names(self.round)

    @property
    def has_one_backward_after_rounds(self) -> bool:
        """Return whether each round adds a loss of its own, and a backward pass after them runs through all."""
        is_one_backward = self.runs_backward and not self.is_each_round_backward
        return is_one_backward and (self.how == "added" or (self.how == "put" and not self._is_of_round_before()))

    def _is_of_round_before(self) -> bool:
        """Return whether what a round adds is computed from what the round before left; outside of a loop it may be."""
        if self.round is None:
            return True
        assignments = _sources_of_targets(*statements(self.round))
        assigned = {path for paths, _ in assignments for path in paths}
        sources = _with_sources(paths_in(self.value), assignments) & assigned
        return not read_first(self.round.body).isdisjoint(path.partition(".")[0] for path in sources)


def keeper(queries: TraceQueries, name: str, scope: tuple[str, str, int]) -> Keeper | None:
    """Return the statement that keeps most under a name, `losses.append(loss)`; None if the source shows none."""
    for places in _places_of(queries, name, scope):
        keepers = (
            Keeper.of(queries, source, statement, kept, path)
            for source, body, path in places
            for statement in statements(body)
            for kept in _ways_to_keep(statement, path)
        )
        if (heaviest := max(keepers, key=attrgetter("weight"), default=None)) is not None:
            return heaviest
    return None


def being_made(queries: TraceQueries) -> tuple[str, Keeper] | None:
    """Return a name and the keeper for what a line still collects: `[model(x) for x in loader]`, `dict(features())`."""
    runs_a_generator = False  # whether the frame inside is a generator's
    for site_id, frame in queries.frames:
        place = queries.source_node(site_id)
        if place is NOWHERE:
            continue
        source, node, statement = place.source, place.node, place.statement
        comprehension = next((code for code in source.ancestors(node) if hasattr(code, "generators")), None)
        if comprehension is not None or (runs_a_generator and not isinstance(statement, LOOPS)):  # a loop keeps none
            code = comprehension or node
            value: Any = getattr(code, "elt", None) or getattr(code, "value", None) or node
            parts = (part for target in targets(statement) for part in chain(target.node))
            path = next(filter(None, map(path_of, parts)), "")
            name = path or " ".join(source.segment(code).split())[:_MOST_OF_CODE]
            return name, Keeper.of(queries, source, statement, ("put" if comprehension else "drained", value), path)
        runs_a_generator = bool(frame.f_code.co_flags & CO_GENERATOR)
    return None


def _places_of(
    queries: TraceQueries, name: str, scope: tuple[str, str, int]
) -> Iterator[Iterable[tuple[Source, ast.AST, str]]]:
    """Yield where to look for what a path keeps: `losses` in the functions that share it, then `.losses` in all."""
    file, _, line = scope
    if "." not in name:
        source = queries.read(file, max(line, 1)) if file else NO_SOURCE
        yield [(source, function, name) for function in _functions_sharing(source, name, scope)]
        return
    parts = [part for part in name.split(".")[1:] if part != "*"]
    files = dict.fromkeys([file, *(block.file for block in queries.trace.sources)])
    sources = [queries.read(file, 1) for file in files if file]
    tails = (".".join(["", *parts[begin:]]) for begin in range(len(parts)))
    for path in dict.fromkeys([*tails, *(f".{part}" for part in parts)]):
        yield ((source, body, path) for source in sources for body in (*_functions(source), source.tree))


def _functions_sharing(source: Source, name: str, scope: tuple[str, str, int]) -> Iterator[ast.AST]:
    """Yield the function that a variable belongs to, as seen from a scope, and the inner functions that share it."""
    _, qualified_name, line = scope
    function_of_scope = source.function_named_at(line, qualified_name.rpartition(".")[2]) or source.tree
    around = (node for node in source.ancestors(function_of_scope) if isinstance(node, FunctionNode))
    owner = next((function for function in around if _binds(function, name)), source.tree)
    yield owner
    inner = (each for each in _functions(source) if each is not owner and owner in source.ancestors(each))
    yield from (function for function in inner if not _binds(function, name))


def _binds(function: ast.AST, name: str) -> bool:
    return name in parameters(function, starred=True) or any(name in binds(each) for each in statements(function))


def _functions(source: Source) -> list[FunctionNode]:
    return [node for node in nodes_in(source.tree) if isinstance(node, FunctionNode)]


def _ways_to_keep(statement: ast.stmt, path: str) -> Iterator[Kept]:
    """Yield `"put", loss` for `losses.append(loss)` and the path `losses`: how it is kept, and what is kept."""
    match statement:
        case ast.Expr(value=ast.Call(args=[*_, ast.expr() as argument]) as call) if called_name(call) in ADDS:
            if (owner := owner_of(call)) is not None and _names_path(owner, path):
                yield "put", _only_part(argument) if called_name(call) == "extend" else argument
                return
        case ast.AugAssign(target=total, value=value) if _names_path(total, path):
            yield "added", _only_part(value)
            return
    parts = ((part, target) for target in targets(statement) for part in listed(target.node) if not target.loops)
    for part, target in parts:
        if _names_path(part, path):
            yield _way_of_value(target.value, path) if _is_path(path_of(part), path) else ("put", target.value)
            return


def _way_of_value(value: ast.expr, path: str) -> Kept:
    """Return how a path keeps the value that is assigned to it: `"added", y` for `x = x + [y]` and the path `x`."""
    match value:
        case ast.BinOp(left=left, op=ast.Add(), right=right) if _is_path(path_of(left), path):
            return "added", _only_part(right)
        case ast.ListComp(elt=part) | ast.SetComp(elt=part) | ast.DictComp(value=part):
            return "put", part
    return ("carried" if any(_is_path(source, path) for source in paths_in(value)) else "is"), value


def _only_part(value: ast.expr) -> ast.expr:
    """Return `y` of `[y]`, which is added to a list; all of `[y, z]`."""
    parts = listed(value)
    return parts[0] if len(parts) == 1 else value


def _names_path(node: ast.AST, path: str) -> bool:
    """Return whether code names a path, or an item of it: `log["loss"]` and the path `log`."""
    return any(_is_path(path_of(part), path) for part in chain(node))


def _is_path(text: str, path: str) -> bool:
    """Return whether a text of code is a path: `self.losses` is `.losses` of any object."""
    return bool(text) and (text == path or (path.startswith(".") and text.endswith(path)))


def _differentiated(function: ast.AST) -> set[str]:
    """Return the variables and attributes that lead to what a function runs backward through."""
    calls = [call for call in calls_in(function) if called_name(call) == "backward"]
    sums = [(paths_in(node.target), paths_in(node.value)) for node in nodes_of(ast.AugAssign, function)]
    return _with_sources(paths_in(*calls), _sources_of_targets(*nodes_of(ast.stmt, function)) + sums)


def _sources_of_targets(*nodes: ast.stmt) -> list[tuple[set[str], set[str]]]:
    """Return `[({"loss"}, {"model", "x"})]` for `loss = model(x)`."""
    return [(paths_in(target.node), paths_in(target.value)) for node in nodes for target in targets(node)]


def _with_sources(paths: set[str], assignments: list[tuple[set[str], set[str]]]) -> set[str]:
    """Return paths with all that they were computed from."""
    while more := {source for names, sources in assignments if names & paths for source in sources} - paths:
        paths = paths | more
    return paths


def _targets_of(statement: ast.stmt) -> Iterator[str]:
    """Yield what a statement puts something into: `self.bank` of `self.bank[name] = x`."""
    owner = owner_of(alone(statement))
    for node in [owner] if owner is not None else [target.node for target in targets(statement)]:
        yield from (path for part in chain(node) if (path := path_of(part)))


def parts_of(value: ast.expr) -> Iterator[ast.expr]:
    """Yield the parts of what a container in code has in it, else what a comprehension makes, else the code itself."""
    if isinstance(value, WRITTEN):
        yield from (inner for part in written_out(value) for inner in parts_of(part))
    else:
        yield from written_out(value) or [value]
