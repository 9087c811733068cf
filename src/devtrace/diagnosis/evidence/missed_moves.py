"""Moves that a tensor missed: of its original, of a neighbour, of a container with a dropped copy."""

import ast
from collections.abc import Iterator
from typing import NamedTuple

from devtrace.diagnosis.evidence.access_paths import AccessPath
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.moves import Move, move_of, moves_from
from devtrace.diagnosis.evidence.origins import factory_call, lineage
from devtrace.diagnosis.evidence.subject import Subject
from devtrace.source import kinds
from devtrace.source.flow import LOOPS
from devtrace.source.matching import alone, match_code, variable
from devtrace.source.safe_values import kept_defaults


def moves_of_lineage(subject: Subject, first: int = 0) -> Iterator[Move]:
    """Yield the moves to the expected device of a tensor, its views, and its originals.

    `first`: the first of these that counts, 0 for the tensor itself.
    """
    bases = {subject.queries.base(row) for row in lineage(subject.queries, subject.row)[first:]}
    return moves_from(subject.queries, bases, subject.expected_device, subject.op)


def move_of_the_original(subject: Subject) -> Move | None:
    """Return the first move, after the tensor was made, of the parameter or buffer that it is a copy of."""
    for move in moves_of_lineage(subject, 1):
        is_owned = subject.queries.is_of_a_module(move.result) or subject.moment.is_registered(move.result)
        if move.op > subject.birth and is_owned:
            return move
    return None


def move_of_a_neighbour(subject: Subject) -> Move | None:
    """Return the move of a neighbour to the expected device: another item of the batch, another variable."""
    has_owner = any(name.last.owner is not None for name in subject.names)
    if subject.names and all(_was_there_before(subject, name) for name in subject.names):
        return None
    for neighbour in subject.moment.siblings(subject.names):
        row = subject.moment.row(neighbour)
        if row is None or not subject.is_expected(row):
            continue
        move = move_of(subject.queries, row)
        if move is not None and (subject.queries.is_of_a_module(move.result) or _is_of_a_factory(subject, move)):
            continue  # a layer was moved, whose result this is; or nothing was, as it was made there
        if move is not None and move.op > subject.birth and (has_owner or move.op >= 0):
            return move if not _is_of_each_round(subject, move) and not _may_be_younger(subject, move) else None
    return None


def _was_there_before(subject: Subject, name: AccessPath) -> bool:
    """Return whether a named value is older than the arguments of its function; a default is, too."""
    if name.last.kind in ("closure", "global"):
        return True
    frame = subject.moment.frames[name.frame] if len(name.references) == 1 and name.frame >= 0 else None
    return frame is not None and kept_defaults(frame.f_code, frame.f_globals).get(name.text) is name.last.value


def _may_be_younger(subject: Subject, move: Move) -> bool:
    """Return whether a variable of unknown birth may be younger than a move: assigned in a call after it."""
    site = subject.queries.site(move.site)
    moved_in = subject.moment.frame_of(site) if site is not None and subject.birth < 0 else None
    if site is None or moved_in is None:
        return False
    bound = filter(None, map(subject.binding_of, subject.names))
    lines = ((moved_in - frame.number, frame.source.span(statement).line) for frame, statement in bound)
    return any(deeper > 0 or (deeper == 0 and line > site.line) for deeper, line in lines)


def _is_of_a_factory(subject: Subject, move: Move) -> bool:
    """Return whether the copy is part of a factory: `torch.tensor(0.0, device=d)`."""
    made = subject.queries.op_node(move.op) if move.op >= 0 else None
    return made is not None and factory_call(made) is made.node


def _is_of_each_round(subject: Subject, move: Move) -> bool:
    """Return whether a loop moves its batch, and a line above the loop gave the tensor's variable its value."""
    moved = subject.queries.source_node(move.site)
    for frame, statement in filter(None, map(subject.binding_of, subject.names)):
        if moved is not None and moved.source is frame.source and moved.function is frame.function:
            around = {id(each) for each in frame.source.ancestors(statement)}
            loops = (each for each in frame.source.ancestors(moved.node) if isinstance(each, LOOPS))
            return any(id(each) not in around for each in loops)
    return False


class DroppedResult(NamedTuple):
    """Name of a tensor in an object that a statement moved in vain, with that statement and its frame."""

    name: AccessPath
    frame: FailingFrame
    statement: ast.stmt


def dropped_result(subject: Subject) -> DroppedResult | None:
    """Return the last statement above the failing line that moved an object with the tensor, and kept nothing.

    `batch.to(device)`, where `to` makes a new batch.
    """
    for name in subject.names:
        root, frame = name.references[0], subject.frame_of(name)
        if frame is None or len(name.references) < 2 or kinds.is_module(root.value):
            continue
        bound = frame.bindings(root.text)
        first = frame.source.span(bound[-1]).end_line if bound else 0
        for statement in frame.statements():
            if not first < frame.source.span(statement).line < frame.line:
                continue
            call = match_code("$x.$move(...)", alone(statement))
            moves = call is not None and call["move"] in subject.queries.move_methods
            if call is not None and moves and variable(call["x"]) == root.text:
                return DroppedResult(name, frame, statement)
    return None
