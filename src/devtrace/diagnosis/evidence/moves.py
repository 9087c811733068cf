"""Copies of tensors from one device to another, and what they took along."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.trace.ids import NO_SITE, ModuleId, OpId, SiteId, TensorId
from devtrace.trace.rows import Module
from devtrace.trace.rows import Move as MoveRow


@dataclass(frozen=True)
class Move:
    """A copy to another device: the op (-1: before the trace), the site, the tensor that was copied and the copy."""

    op: OpId
    site: SiteId
    source: TensorId
    result: TensorId


def crossed(queries: TraceQueries, row: TensorId) -> bool:
    """Return whether a tensor is a copy from another device."""
    source = queries.source(row)
    return source >= 0 and queries.trait(source) != queries.trait(row)


def move_of(queries: TraceQueries, row: TensorId) -> Move | None:
    """Return the copy that brought a tensor to its device."""
    for past in queries.ancestors(row, 40):
        if queries.trait(past) == queries.trait(row) and crossed(queries, past):
            return Move(queries.producer(past), queries.born(past), queries.source(past), past)
    return None


def moves_of(queries: TraceQueries, rows: Iterable[TensorId]) -> list[Move]:
    """Return the copies that brought tensors to their device, the last one first."""
    found = [move for row in rows if (move := move_of(queries, row)) is not None]
    return sorted(found, key=lambda move: -move.op)


def moves_from(queries: TraceQueries, bases: set[TensorId], expected_device: str, before: OpId) -> Iterator[Move]:
    """Yield the copies to a device, before an op, of the given tensors or of views of them."""
    tensors = queries.trace.tensors
    traits, sources = tensors.ints(queries.of), tensors.ints("source")
    target = queries.trait_id(expected_device)
    copied = (sources >= 0) & (target >= 0) & (traits == target) & (traits[sources] != target)
    copied &= (tensors.ints("producer") < before) & np.isin(queries.bases[sources], list(bases))
    for row in map(TensorId, np.flatnonzero(copied).tolist()):
        yield Move(queries.producer(row), queries.born(row), queries.source(row), row)


def moves_of_holders(queries: TraceQueries, row: TensorId, moves: list[Move]) -> list[Move]:
    """Keep moves of modules that hold a tensor, and moves outside any module's move."""
    holders = set(_holders(queries, row))
    moved = {site: _modules_moved_at(queries, site) for site in {move.site for move in moves}}
    return [move for move in moves if not holders or not moved[move.site] or not holders.isdisjoint(moved[move.site])]


def was_attached_after(queries: TraceQueries, row: TensorId, move: Move) -> bool:
    """Return whether a module that holds a tensor became part of the moved one only after the move."""
    modules, moved, holders = queries.trace.modules, _modules_moved_at(queries, move.site), _holders(queries, row)
    top = next((depth for depth, module in enumerate(holders) if module in moved), 0)
    attached = [modules.number("op", module) for module in holders[:top] if modules.number("site", module) >= 0]
    return any(op > moved[holders[top]] for op in attached)


def moves_of_modules(queries: TraceQueries, row: TensorId, kind: str, device: str) -> list[Move]:
    """Return the moves to a device of modules that hold a tensor, by class, last first; a move may be of no tensor."""
    holders, moves = set(_holders(queries, row)), queries.trace.moves
    return sent_to((each for each in moves if each.module.id in holders and each.module.type == kind), row, device)


def is_within(module: Module, around: Module) -> bool:
    return module.id == around.id or (module.parent is not None and is_within(module.parent, around))


def moves_of_one(queries: TraceQueries, kind: str, path: str) -> list[MoveRow]:
    """Return the moves of a module, by its class and its name among several."""
    moves = [move for move in queries.trace.moves if move.module.type == kind]
    return [move for move in moves if move.module.path == path or len({each.module.id for each in moves}) == 1]


def sent_to(moves: Iterable[MoveRow], row: TensorId, device: str) -> list[Move]:
    """Return the moves to a device as moves of a tensor that they missed, the last one first."""
    sent = (move for move in moves if move.device is not None and str(move.device) == device)
    found = [Move(move.op, move.site.id if move.site is not None else NO_SITE, row, row) for move in sent]
    return sorted(found, key=lambda move: -move.op)


def _modules_moved_at(queries: TraceQueries, site: SiteId) -> dict[ModuleId, OpId]:
    """Return the modules that were moved at a site, each with the op of its last move."""
    moves = queries.trace.moves
    rows = [row for row in range(len(moves)) if moves.number("site", row) == site]
    return {ModuleId(moves.number("module", row)): OpId(moves.number("op", row)) for row in rows}


def _holders(queries: TraceQueries, row: TensorId) -> list[ModuleId]:
    """Return the module that owns a parameter or buffer, by the recorder's names, then the modules around it.

    Of several that had its name one after the other it is the last.
    """
    path = name_of(queries, queries.base(row)).rpartition(".")[0]
    modules, found = queries.trace.modules, list[ModuleId]()
    module = next((at for at in reversed(range(len(modules))) if path and modules.raw("path", at) == path), -1)
    while module >= 0:
        found.append(ModuleId(module))
        module = modules.number("parent", module)
    return found


def name_of(queries: TraceQueries, base: TensorId) -> str:
    """Return the recorder's name of a tensor, or of a view of it: `self.table = torch.tensor(rows).unsqueeze(0)`."""
    name = str(queries.trace.tensors.raw("name", base))
    if name:
        return name
    views = np.flatnonzero(queries.bases == base).tolist()
    return next(filter(None, (str(queries.trace.tensors.raw("name", row)) for row in views)), "")
