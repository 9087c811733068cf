"""Copies of tensors from one device to another, and what they took along."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from devtrace.diagnosis.evidence import modules
from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.trace.ids import ModuleId, OpId, SiteId, TensorId


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
    moves = [move for row in rows if (move := move_of(queries, row)) is not None]
    return sorted(moves, key=lambda move: -move.op)


def moves_from(queries: TraceQueries, bases: set[TensorId], expected_trait: str, before: OpId) -> Iterator[Move]:
    """Yield the copies to a device, before an op, of the given tensors or of views of them."""
    sources, producers = queries.trace.tensors.ints("source"), queries.trace.tensors.ints("producer")
    is_copy = (sources >= 0) & (producers < before) & np.isin(queries.bases[sources], list(bases))
    for row in map(TensorId, np.flatnonzero(is_copy).tolist()):
        if queries.trait(row) == expected_trait and crossed(queries, row):
            yield Move(queries.producer(row), queries.born(row), queries.source(row), row)


def name_of(queries: TraceQueries, base: TensorId) -> str:
    """Return the recorder's name of a tensor, else of a view: `self.table = torch.tensor(rows).unsqueeze(0)`."""
    rows = [base, *np.flatnonzero(queries.bases == base).tolist()]
    return next(filter(None, (str(queries.trace.tensors.raw("name", row)) for row in rows)), "")


def holders(queries: TraceQueries, base: TensorId) -> list[ModuleId]:
    """Return the module that owns a tensor, by the recorder's names, then the modules around it."""
    return modules.around(queries, modules.named(queries, name_of(queries, base).rpartition(".")[0]))


def modules_moved_at(queries: TraceQueries, site: SiteId) -> dict[ModuleId, OpId]:
    """Return the modules that a line moved, with the ops of their last moves."""
    moves = queries.trace.moves
    rows = np.flatnonzero(moves.ints("site") == site).tolist()
    return {ModuleId(moves.number("module", row)): OpId(moves.number("op", row)) for row in rows}
