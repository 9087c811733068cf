"""How a tensor came to its device: by a factory, by a copy, or from outside the trace."""

import ast
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from devtrace.diagnosis.evidence.moves import crossed
from devtrace.diagnosis.evidence.trace_queries import NOWHERE, SourceNode, TraceQueries
from devtrace.diagnosis.evidence.trait import Trait
from devtrace.diagnosis.slugs import Arrival
from devtrace.source.defuse import path_of
from devtrace.source.element_types import FROM_ARRAYS
from devtrace.source.matching import (
    called_name,
    called_names,
    calls_in,
    chain,
    given_trait,
    is_literal,
    keyword,
    match_code,
    nodes_of,
    only,
    operands,
    owner_of,
    same_code,
)
from devtrace.source.parsing import FunctionNode, Source, kept_with_source, own_name
from devtrace.source.vocabulary import LIKE_DATA, MAKES, MAKES_ON_HOST, full_name, is_move
from devtrace.trace.ids import NO_TENSOR, OpId, SiteId, TensorId

MOST: Final = 64
_NEAR: Final = 50
_MOST_COPIES: Final = 20
_LIKE: Final = ("_like", "aten.new_")
"""In names of factories that take their device from their input."""
FROM_DATA: Final = ("lift_fresh", "set_", "from_numpy")
"""Ops that take over data: torch.tensor([1, 2])."""


@dataclass(frozen=True)
class Origin:
    """Arrival of a tensor on its device: `op` brought `row` there; `path` leads from the odd tensor back to `row`."""

    arrival: Arrival
    row: TensorId
    op: OpId
    path: tuple[TensorId, ...]


def find_origin(queries: TraceQueries, row: TensorId, preferred_parents: frozenset[TensorId] = frozenset()) -> Origin:
    """Follow a tensor back on its own device; through computation by a preferred parent, else by the largest one."""
    path = [row]
    while len(path) < MOST:
        tensor, op = path[-1], queries.producer(path[-1])
        leader_row = followed(queries, op)  # of `t` in `torch.zeros(n, device=t.device)`
        made_from = [leader_row] if leader_row >= 0 else queries.made_from(tensor)
        parents = [parent for parent in made_from if parent not in path]
        arrival = _arrival(queries, tensor, parents)
        if arrival is not None:
            return Origin(arrival, tensor, op, tuple(path))
        alike = [parent for parent in parents if _is_alike(queries, parent, tensor)]
        if queries.op_name(op).startswith(queries.by.led_by_first) and parents[0] in alike:
            alike = parents[:1]  # `x[index]` has the device of `x`, however large `index` is
        path.append(max(alike, key=lambda parent: (parent in preferred_parents, *_weight(queries, parent))))
    return Origin("given", path[-1], queries.producer(path[-1]), tuple(path))


def _arrival(queries: TraceQueries, row: TensorId, parents: list[TensorId]) -> Arrival | None:
    """Return how a tensor came to its device; None if it was computed there from one of its parents."""
    op = queries.producer(row)
    if op >= 0 and crossed(queries, row):
        maker = queries.op_node(op)  # `torch.tensor(rows)` makes it on the CPU, and copies it to a default device
        is_default = factory_call(maker) is maker.node and trait_argument(maker, queries.by) is None
        return "made" if is_default else "copied"
    is_led = op >= 0 and bool(parents) and not queries.inputs(op)  # by `t` of `torch.zeros(n, device=t.device)`
    is_like = is_led or (op >= 0 and bool(queries.inputs(op)) and any(part in queries.op_name(op) for part in _LIKE))
    if op >= 0 and queries.kind(op) == "create" and not is_like:
        return _arrival_by_factory(queries, op)
    if not parents:
        return "given"
    return None if any(_is_alike(queries, parent, row) for parent in parents) else queries.by.elsewhere


def _is_alike(queries: TraceQueries, one: TensorId, other: TensorId) -> bool:
    return queries.trait(one) == queries.trait(other)


def _weight(queries: TraceQueries, row: TensorId) -> tuple[bool, bool, int]:
    """Return the rank of an input as the preferred parent: a layer first, then the largest."""
    tensors = queries.trace.tensors
    is_weight = queries.by.heeds_weights and tensors.raw("role", row) == "parameter"
    return is_weight, bool(queries.dims[row] > 0), tensors.number("bytes", row)


def _arrival_by_factory(queries: TraceQueries, op: OpId) -> Arrival:
    node = queries.op_node(op)
    is_from_data = any(part in queries.op_name(op) for part in FROM_DATA)
    if is_from_data and factory_call(node) is None:
        return "given"
    if _follows_what_its_function_made(node, queries.by):
        return "given"
    return "made-there" if trait_argument(node, queries.by) is not None else "made"


def factory_call(place: SourceNode) -> ast.Call | None:
    """Return the call of a torch factory: `torch.zeros(n)`, or the one inside `torch.ones(n, n).triu(1)`."""
    return next((call for call in only(ast.Call, chain(place.node)) if called_name(call) in MAKES), None)


def was_materialized(queries: TraceQueries, row: TensorId) -> bool:
    """Return whether torch made a lazy module's parameter in its first call, on the device of its empty stand-in."""
    op = queries.producer(queries.base(row))
    if queries.module(op) < 0 or "empty" not in queries.op_name(op):
        return False
    place = queries.op_node(op)
    return place is not NOWHERE and factory_call(place) is None


def is_factory_without(by: Trait, call: ast.Call, source: Source) -> bool:
    """Return whether a call is `torch.zeros(n)` or of another factory of torch, without a device= (or dtype=)."""
    module, _, name = full_name(call.func, source).rpartition(".")
    return module == "torch" and name in MAKES and {None, by.name}.isdisjoint(word.arg for word in call.keywords)


def is_of_an_array(queries: TraceQueries, origin: Origin) -> bool:
    """Return whether a tensor shares an array's memory or took its dtype; Python's numbers take the default dtype."""
    statement = queries.source_node(queries.born(origin.row)).statement
    if origin.op < 0 or origin.arrival not in ("given", "made"):
        return False
    calls = [call for call in calls_in(statement) if keyword(call, "dtype") is None]
    takes_dtype = queries.trait(origin.row) == "float64" and any(called_name(call) in FROM_ARRAYS for call in calls)
    return takes_dtype or not called_names(statement).isdisjoint(MAKES_ON_HOST)


def is_like_data(queries: TraceQueries, origin: Origin) -> bool:
    """Return whether a factory made a tensor of data, such as `torch.rand(...)`, outside any module."""
    called = called_names(queries.op_node(origin.op).node)
    return not called.isdisjoint(LIKE_DATA) and queries.module(origin.op) < 0


def trait_argument(place: SourceNode, by: Trait) -> ast.expr | None:
    """Return `d` of `torch.zeros(n, device=d)`, or of `torch.zeros(n).to(d)`; nothing for `device=None`."""
    argument = keyword(factory_call(place), by.name)
    if argument is None:
        moved_to = given_trait(_move_behind(place))
        return moved_to if moved_to is not None and by.is_word(moved_to) else None
    return argument if match_code("None", argument) is None else None


def device_given(made: SourceNode, by: Trait) -> ast.expr | None:
    """Return the device that a call was given: of `torch.zeros(n, device=d)`, `x.to(d)`."""
    return trait_argument(made, by) or next(filter(None, map(given_trait, calls_in(made.node))), None)


def _move_behind(place: SourceNode) -> ast.Call | None:
    """Return `torch.zeros(n).to(self.device)`, a move right behind a factory that copies nothing on the same device."""
    match [*place.source.ancestors(factory_call(place))]:
        case [call, _, ast.Call(func=ast.Attribute(value=inner)) as move, *_] if inner is call:
            return move if is_move(called_name(move)) else None
    return None


def _follows_what_its_function_made(place: SourceNode, by: Trait) -> bool:
    """Return whether the device is `x.device` of a tensor that the same function made without `device=`."""
    match = match_code(f"$x.{by.name}", trait_argument(place, by))
    function = place.source.function(place.node)
    if match is None or function is None:
        return False
    assignments = nodes_of(ast.Assign, function)
    values = [node.value for node in assignments if any(same_code(target, match["x"]) for target in node.targets)]
    factories = [call for call in only(ast.Call, values) if is_factory_without(by, call, place.source)]
    return bool(values) and factories == values


def leader(queries: TraceQueries, site: SiteId) -> str:
    """Return `t` for `torch.arange(n, device=t.device)` and `torch.arange(n).to(t)`; empty if no tensor leads."""
    place = queries.source_node(site)
    return _leader(place.source, place, queries.by)


@kept_with_source
def _leader(source: Source, place: SourceNode, by: Trait) -> str:
    move = match_code("$made.$move($x)", _move_behind(place))
    match = match_code(f"$x.{by.name}", trait_argument(place, by)) or move
    path = path_of(match["x"]) if match is not None else ""
    return path if path != own_name(source, place.node) else ""  # `self.device` is of an object, not of a tensor


def followed(queries: TraceQueries, op: OpId) -> TensorId:
    """Return the row of `t` of `torch.arange(n, device=t.device)`, or of `torch.arange(n).to(t)`; -1 for none.

    A function that has returned has no `t` to ask: the op nearest to the factory that took `t`, as `t + 1`, tells.
    """
    is_factory = op >= 0 and queries.kind(op) == "create" and not queries.inputs(op)
    path = leader(queries, queries.op_site(op)) if is_factory else ""
    if not path:
        return NO_TENSOR
    trait, function = queries.trait(queries.outputs(op)[0]), queries.op_node(op).function
    for near_op, place in near_ops(queries, op, op + _NEAR):
        for index in _input_indexes(place.source, place.node, path, function):
            row = next(iter(queries.inputs(near_op)[index : index + 1]), NO_TENSOR)
            if row >= 0 and queries.trait(row) == trait:
                return row
    return NO_TENSOR


@kept_with_source
def _input_indexes(source: Source, node: ast.AST, path: str, function: FunctionNode | None) -> list[int]:
    """Return `[1]` for `t` of `torch.outer(x, t)`, if that is code of the function: an op's inputs by that path."""
    paths = taken_by(source, node) if source.function(node) is function else []
    return [index for index, other in enumerate(paths) if other == path]


def near_ops(queries: TraceQueries, op: OpId, end: int) -> Iterator[tuple[OpId, SourceNode]]:
    """Yield the ops around one in its thread, each with its code: from it on up to an end, then those before."""
    sites, threads = queries.trace.ops.ints("site"), queries.trace.ops.ints("thread")
    for near in itertools.chain(range(op, min(end, len(sites))), range(op - 1, max(op - _NEAR, -1), -1)):
        place = queries.source_node(SiteId(int(sites[near]))) if threads[near] == threads[op] else NOWHERE
        if place is not NOWHERE:
            yield OpId(near), place


@kept_with_source
def taken_by(source: Source, node: ast.AST) -> list[str]:
    """Return the paths to an op's first inputs: `x` of `x.sum(0)`, both of `torch.outer(x, y)` and `x * y`.

    The path is empty for an operand that has none, as a call.
    """
    taken = [operand for operand in operands(node) if not is_literal(operand)]
    match node:
        case ast.Call(func=function, args=arguments):
            is_torchs = full_name(function, source).rpartition(".")[0] == "torch"
            taken = arguments if is_torchs else [*filter(None, [owner_of(node)])]
    return [*map(path_of, taken)]


def lineage(queries: TraceQueries, row: TensorId) -> list[TensorId]:
    """Return a tensor, then its originals (by copy, view or `_like`) on the same device, nearest first."""
    rows = [row]
    while len(rows) <= _MOST_COPIES:
        op = queries.producer(rows[-1])
        like = queries.inputs(op)[:1] if op >= 0 and queries.kind(op) == "create" else []
        parents = queries.made_from(rows[-1]) if queries.source(rows[-1]) >= 0 else like  # a source: of a copy or view
        alike = [parent for parent in parents if parent not in rows and queries.trait(parent) == queries.trait(row)]
        if not alike:
            break
        rows.append(alike[0])
    return rows
