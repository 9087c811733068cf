"""Where a tensor comes from: the op that put it on its device, the copy that left it, the move that missed it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from devtrace.diagnosis.evidence.trace_queries import SourceNode, TraceQueries
from devtrace.diagnosis.findings import Site

Put = Literal["made", "made-there", "copied", "given"]
MOST: Final = 64
_SAME_AS: Final = ("_like", "aten.new_")


@dataclass(frozen=True)
class Origin:
    """How a tensor's data came to its device. `row` is the tensor put there, `path` the rows from the odd one to it.

    made: by a factory that was told no device. made-there: by one that was. copied: from another device. given: from
    outside the trace, or read from what has no device of its own (a list, numpy).
    """

    put: Put
    row: int
    op: int
    path: tuple[int, ...]


def origin(facts: TraceQueries, row: int, weighty: frozenset[int] = frozenset()) -> Origin:
    """Follow a tensor back on its own device; through computation by the parent that is `weighty`, else the largest."""
    path = [row]
    while len(path) < MOST:
        here = path[-1]
        op = facts.producer(here)
        parents = [parent for parent in facts.made_from(here) if parent not in path]
        if op < 0 and not parents:
            return Origin("given", here, op, tuple(path))
        if op >= 0 and _crossed(facts, here):
            return Origin("copied", here, op, tuple(path))
        if op >= 0 and facts.kind(op) == "create" and not _like(facts, op):
            return Origin(_made(facts, op), here, op, tuple(path))
        same = [parent for parent in parents if facts.device(parent) == facts.device(here)]
        if not same:
            return Origin("copied" if parents else "given", here, op, tuple(path))
        path.append(max(same, key=lambda parent: (parent in weighty, facts.dims[parent] > 0, _bytes(facts, parent))))
    return Origin("given", path[-1], facts.producer(path[-1]), tuple(path))


def _bytes(facts: TraceQueries, row: int) -> int:
    return facts.trace.tensors.number("bytes", row)


def _like(facts: TraceQueries, op: int) -> bool:
    """zeros_like and its kin take their device from their input."""
    name = facts.op_name(op)
    return bool(facts.inputs(op)) and any(part in name for part in _SAME_AS)


def _crossed(facts: TraceQueries, row: int) -> bool:
    source = facts.source(row)
    return source >= 0 and facts.device(source) != facts.device(row)


def _made(facts: TraceQueries, op: int) -> Put:
    if "lift_fresh" in facts.op_name(op) or "set_" in facts.op_name(op):
        place = facts.place(facts.trace.ops.number("site", op))
        if place is None or factory(place) is None:
            return "given"
        return "made-there" if told(place) else "made"
    place = facts.place(facts.trace.ops.number("site", op))
    return "made-there" if place is not None and told(place) else "made"


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


def is_untold(call: ast.Call) -> bool:
    """Whether a call is of torch's factories, as `torch.zeros`, and is given no device."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    of_torch = isinstance(owner, ast.Name) and owner.id in ("torch", "th")
    return of_torch and _called(call) in FACTORIES and not any(word.arg == "device" for word in call.keywords)


def _called(call: ast.Call) -> str:
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def told(place: SourceNode) -> bool:
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


def move_of(facts: TraceQueries, row: int) -> Move | None:
    """The copy that brought a tensor to its device."""
    for here in facts.ancestors(row, 40):
        if facts.device(here) != facts.device(row):
            continue
        if _crossed(facts, here):
            return Move(facts.producer(here), facts.born(here), facts.source(here), here)
    return None


def concerned(facts: TraceQueries, row: int, moves: list[Move]) -> list[Move]:
    """The moves of something that a tensor belongs to; one where no module was seen to move may be."""
    holders = set(_holders(facts, row))
    seen = {site: _moved_at(facts, site) for site in {move.site for move in moves}}
    return [move for move in moves if not holders or not seen[move.site] or not holders.isdisjoint(seen[move.site])]


def was_attached_after(facts: TraceQueries, row: int, move: Move) -> bool:
    """Whether a module that holds a tensor was seen to become part of the one that moved only after it had moved."""
    modules, moved, holders = facts.trace.modules, _moved_at(facts, move.site), _holders(facts, row)
    top = next((place for place, at in enumerate(holders) if at in moved), 0)
    attached = [modules.number("op", at) for at in holders[:top] if modules.number("site", at) >= 0]
    return any(op > moved[holders[top]] for op in attached)


def _moved_at(facts: TraceQueries, site: int) -> dict[int, int]:
    """The modules that were moved at a site, each with the op of its last move."""
    moves = facts.trace.moves
    here = [each for each in range(len(moves)) if moves.number("site", each) == site]
    return {moves.number("module", each): moves.number("op", each) for each in here}


def _holders(facts: TraceQueries, row: int) -> list[int]:
    """The module that holds a parameter or buffer as its own, by the recorder's names, then those around it."""
    path = str(facts.trace.tensors.raw("name", facts.base(row))).rpartition(".")[0]
    modules, found = facts.trace.modules, []
    at = next((at for at in range(len(modules)) if path and modules.raw("path", at) == path), -1)
    while at >= 0:
        found.append(at)
        at = modules.number("parent", at)
    return found


def moves_from(facts: TraceQueries, bases: set[int], expected_device: str, before: int) -> Iterator[Move]:
    """Copies to `home`, before an op, of the given tensors or of views of them."""
    tensors = facts.trace.tensors
    devices, sources = tensors.ints("device"), tensors.ints("source")
    there = facts.device_names.index(expected_device)
    copied = (sources >= 0) & (devices == there) & (devices[sources] != there)
    copied &= (tensors.ints("producer") < before) & np.isin(facts.bases[sources], list(bases))
    for row in np.flatnonzero(copied).tolist():
        yield Move(facts.producer(row), facts.born(row), facts.source(row), row)


def shown(facts: TraceQueries, site: int) -> Site | None:
    """A site as a reader wants it: a simple statement that begins on the line whole, of a block its first line."""
    row = facts.site(site)
    place = facts.place(site)
    if row is None or place is None:
        return row
    if not isinstance(place.statement, _SIMPLE):
        return row if place.node is not place.statement else _first_line(row)
    whole = facts.site_in(place.source, place.statement, row)
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
