"""The tensors beside one: in the same container, else in the same frame."""

from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.moves import Move, move_of
from devtrace.diagnosis.evidence.subject import Subject
from devtrace.source.flow import LOOPS


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
            return move if not _is_of_each_round(subject, move) else None
    return None


def _is_of_each_round(subject: Subject, move: Move) -> bool:
    """Return whether a loop moves its batch, and a line above the loop gave the tensor's variable its value."""
    moved = subject.queries.source_node(move.site)
    for name in subject.names if moved is not None else ():
        frame = FailingFrame.of(subject.snapshot, name.frame, subject.expected_device)
        bound = frame.bindings(name.references[0].text)[-1:] if frame is not None else []
        if frame is None or not bound or moved is None or moved.source is not frame.source:
            continue
        if frame.source.function(moved.node) is frame.function:
            around = {id(each) for each in frame.source.ancestors(bound[0])}
            loops = (each for each in frame.source.ancestors(moved.node) if isinstance(each, LOOPS))
            return any(id(each) not in around for each in loops)
    return False
