"""Where a tensor comes from: the op that put it on its device, the copy that left it, the move that missed it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from devtrace.diagnosis.evidence.trace_queries import SourceNode, TraceQueries
from devtrace.diagnosis.findings import Site
from devtrace.diagnosis.slugs import Arrival

MOST: Final = 64
_SAME_AS: Final = ("_like", "aten.new_")


@dataclass(frozen=True)
class Origin:
    """How a tensor's data came to its device: `row` arrived there, and `path` leads to it from the odd tensor."""

    arrival: Arrival
    row: int
    op: int
    path: tuple[int, ...]


def origin(queries: TraceQueries, row: int, preferred_parents: frozenset[int] = frozenset()) -> Origin:
    """Follow a tensor back on its own device; through computation by the parent that is `weighty`, else the largest."""
    path = [row]
    while len(path) < MOST:
        here = path[-1]
        op = queries.producer(here)
        parents = [parent for parent in queries.made_from(here) if parent not in path]
        if op < 0 and not parents:
            return Origin("given", here, op, tuple(path))
        if op >= 0 and _crossed(queries, here):
            return Origin("copied", here, op, tuple(path))
        if op >= 0 and queries.kind(op) == "create" and not _like(queries, op):
            return Origin(_made(queries, op), here, op, tuple(path))
        same = [parent for parent in parents if queries.device(parent) == queries.device(here)]
        if not same:
            return Origin("copied" if parents else "given", here, op, tuple(path))
        path.append(
            max(
                same,
                key=lambda parent: (parent in preferred_parents, queries.dims[parent] > 0, _bytes(queries, parent)),
            )
        )
    return Origin("given", path[-1], queries.producer(path[-1]), tuple(path))


def _bytes(queries: TraceQueries, row: int) -> int:
    return queries.trace.tensors.number("bytes", row)


def _like(queries: TraceQueries, op: int) -> bool:
    """zeros_like and its kin take their device from their input."""
    name = queries.op_name(op)
    return bool(queries.inputs(op)) and any(part in name for part in _SAME_AS)


def _crossed(queries: TraceQueries, row: int) -> bool:
    source = queries.source(row)
    return source >= 0 and queries.device(source) != queries.device(row)


def _made(queries: TraceQueries, op: int) -> Arrival:
    if "lift_fresh" in queries.op_name(op) or "set_" in queries.op_name(op):
        place = queries.source_node(queries.trace.ops.number("site", op))
        if place is None or factory(place) is None:
            return "given"
        return "made-there" if has_device_argument(place) else "made"
    place = queries.source_node(queries.trace.ops.number("site", op))
    return "made-there" if place is not None and has_device_argument(place) else "made"


_WINDOWS: Final = ("bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window")
_FILLED: Final = ("empty", "eye", "full", "ones", "zeros", "arange", "linspace", "logspace", "tril_indices")
_RANDOM: Final = ("normal", "rand", "randint", "randn", "randperm")
_READ: Final = ("as_tensor", "asarray", "scalar_tensor", "sparse_coo_tensor", "tensor", "triu_indices")
FACTORIES: Final = frozenset((*_WINDOWS, *_FILLED, *_RANDOM, *_READ))
"""torch functions that take a device."""


def factory(place: SourceNode) -> ast.Call | None:
    """The call of a torch factory at a place: `torch.zeros(n)`, or inside `torch.ones(n, n).triu(1)`."""
    node: ast.AST = place.node
    while isinstance(node, ast.Call | ast.Attribute | ast.Subscript):
        if isinstance(node, ast.Call) and _called(node) in FACTORIES:
            return node
        node = node.func if isinstance(node, ast.Call) else node.value
    return None


def is_factory_without_device(call: ast.Call) -> bool:
    """Whether a call is of torch's factories, as `torch.zeros`, and is given no device."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    of_torch = isinstance(owner, ast.Name) and owner.id in ("torch", "th")
    return of_torch and _called(call) in FACTORIES and not any(word.arg == "device" for word in call.keywords)


def _called(call: ast.Call) -> str:
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def has_device_argument(place: SourceNode) -> bool:
    """Whether the factory at a place is given a device."""
    call = factory(place)
    return call is not None and any(word.arg == "device" and not _is_none(word.value) for word in call.keywords)


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


@dataclass(frozen=True)
class Move:
    """A copy to another device: the op (-1: before the trace), the site, the tensor that was copied and the copy."""

    op: int
    site: int
    source: int
    result: int


def move_of(queries: TraceQueries, row: int) -> Move | None:
    """The copy that brought a tensor to its device."""
    for here in queries.ancestors(row, 40):
        if queries.device(here) != queries.device(row):
            continue
        if _crossed(queries, here):
            return Move(queries.producer(here), queries.born(here), queries.source(here), here)
    return None


def moves_of_holders(queries: TraceQueries, row: int, moves: list[Move]) -> list[Move]:
    """The moves of something that a tensor belongs to; one where no module was seen to move may be."""
    holders = set(_holders(queries, row))
    seen = {site: _moved_at(queries, site) for site in {move.site for move in moves}}
    return [move for move in moves if not holders or not seen[move.site] or not holders.isdisjoint(seen[move.site])]


def was_attached_after(queries: TraceQueries, row: int, move: Move) -> bool:
    """Whether a module that holds a tensor was seen to become part of the one that moved only after it had moved."""
    modules, moved, holders = queries.trace.modules, _moved_at(queries, move.site), _holders(queries, row)
    top = next((place for place, at in enumerate(holders) if at in moved), 0)
    attached = [modules.number("op", at) for at in holders[:top] if modules.number("site", at) >= 0]
    return any(op > moved[holders[top]] for op in attached)


def _moved_at(queries: TraceQueries, site: int) -> dict[int, int]:
    """The modules that were moved at a site, each with the op of its last move."""
    moves = queries.trace.moves
    here = [each for each in range(len(moves)) if moves.number("site", each) == site]
    return {moves.number("module", each): moves.number("op", each) for each in here}


def _holders(queries: TraceQueries, row: int) -> list[int]:
    """The module that holds a parameter or buffer as its own, by the recorder's names, then those around it."""
    path = str(queries.trace.tensors.raw("name", queries.base(row))).rpartition(".")[0]
    modules, found = queries.trace.modules, []
    at = next((at for at in range(len(modules)) if path and modules.raw("path", at) == path), -1)
    while at >= 0:
        found.append(at)
        at = modules.number("parent", at)
    return found


def moves_from(queries: TraceQueries, bases: set[int], expected_device: str, before: int) -> Iterator[Move]:
    """Copies to `home`, before an op, of the given tensors or of views of them."""
    tensors = queries.trace.tensors
    devices, sources = tensors.ints("device"), tensors.ints("source")
    there = queries.device_names.index(expected_device)
    copied = (sources >= 0) & (devices == there) & (devices[sources] != there)
    copied &= (tensors.ints("producer") < before) & np.isin(queries.bases[sources], list(bases))
    for row in np.flatnonzero(copied).tolist():
        yield Move(queries.producer(row), queries.born(row), queries.source(row), row)


def shown(queries: TraceQueries, site: int) -> Site | None:
    """A site as a reader wants it: a simple statement that begins on the line whole, of a block its first line."""
    row = queries.site(site)
    place = queries.source_node(site)
    if row is None or place is None:
        return row
    if not isinstance(place.statement, _SIMPLE):
        return row if place.node is not place.statement else _first_line(row)
    whole = queries.site_in(place.source, place.statement, row)
    if whole.line != row.line:
        return row
    return Site(
        row.file,
        row.line,
        whole.column,
        whole.end_line,
        whole.end_column,
        row.function,
        whole.text,
        row.cell,
        row.cell_id,
    )


def _first_line(row: Site) -> Site:
    text = row.text.split("\n")[0]
    return replace(row, end_line=row.line, end_column=row.column + len(text.encode()), text=text)


_SIMPLE: Final = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return)


def targets(place: SourceNode, index: int = 0) -> list[str]:
    """The names that a statement gives to the value at a place: `q` and `k` of `q, k = x.chunk(2)`."""
    statement = place.statement
    if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
        return []
    lefts = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    found = []
    for left in lefts:
        if isinstance(left, ast.Tuple | ast.List):
            right = statement.value.elts if isinstance(statement.value, ast.Tuple | ast.List) else None
            at = next((i for i, part in enumerate(right) if part is place.node), None) if right else index
            if at is not None and at < len(left.elts) and (right or statement.value is place.node):
                found.append(place.source.segment(left.elts[at]))
        elif statement.value is place.node:
            found.append(place.source.segment(left))
    return found
