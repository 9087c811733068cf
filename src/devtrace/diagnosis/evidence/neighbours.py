"""The tensors beside one: in the same container, else in the same frame."""

from devtrace.diagnosis.evidence.moves import Move, move_of
from devtrace.diagnosis.evidence.subject import Subject


def move_of_a_neighbour(subject: Subject) -> Move | None:
    """Return how a tensor that came with it got to the expected device: another item of the batch, another variable."""
    has_owner = any(name.last.owner is not None for name in subject.names)
    if subject.names and all(name.last.kind in ("closure", "global") for name in subject.names):
        return None  # it was there before the arguments of the function that uses it came
    for neighbour in subject.snapshot.siblings(subject.names):
        row = subject.snapshot.row(neighbour)
        if row is None or not subject.is_expected(row):
            continue
        move = move_of(subject.queries, row)
        if move is not None and subject.queries.is_of_a_module(move.result):
            continue  # a layer was moved, whose result this is
        if move is not None and move.op > subject.birth and (has_owner or move.op >= 0):
            return move
    return None
