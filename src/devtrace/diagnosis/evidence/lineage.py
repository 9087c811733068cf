"""A tensor and the ones it was copied or viewed from, on one device."""

from collections.abc import Iterator
from typing import Final

from devtrace.diagnosis.evidence.moves import Move, moves_from
from devtrace.diagnosis.evidence.subject import Subject
from devtrace.diagnosis.evidence.trace_queries import TraceQueries

MOST: Final = 20


class Lineage:
    """A tensor, then the tensors that it is a copy, a view or a `_like` of, nearest first."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.rows = lineage(subject.queries, subject.row)

    def moves(self) -> Iterator[Move]:
        """Yield the moves to the expected device of what shares a storage with any of these tensors."""
        return self._moves_of(self.rows)

    def move_of_its_parameter(self) -> Move | None:
        """Return the first move, after the tensor was made, of the parameter or buffer that it is a copy of."""
        later = (move for move in self._moves_of(self.rows[1:]) if move.op > self.subject.birth)
        return next((move for move in later if self._is_of_a_module(move.result)), None)

    def _moves_of(self, rows: list[int]) -> Iterator[Move]:
        subject = self.subject
        bases = {subject.queries.base(row) for row in rows}
        return moves_from(subject.queries, bases, subject.expected_device, subject.op)

    def _is_of_a_module(self, row: int) -> bool:
        return self.subject.queries.is_of_a_module(row) or self.subject.snapshot.is_registered(row)


def lineage(queries: TraceQueries, row: int) -> list[int]:
    """Return a tensor, then those that it is a copy, a view or a `_like` of, nearest first."""
    rows = [row]
    while len(rows) <= MOST:
        parents = [parent for parent in _copied_from(queries, rows[-1]) if parent not in rows]
        parents = [parent for parent in parents if queries.trait(parent) == queries.trait(row)]
        if not parents:
            break
        rows.append(parents[0])
    return rows


def _copied_from(queries: TraceQueries, row: int) -> list[int]:
    if queries.source(row) >= 0:
        return queries.made_from(row)
    op = queries.producer(row)
    is_like = op >= 0 and queries.kind(op) == "create"
    return queries.inputs(op)[:1] if is_like else []
