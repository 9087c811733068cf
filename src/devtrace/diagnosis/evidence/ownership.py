"""The module that holds a tensor, and where and how the module's other tensors were moved.

Names of objects tell it with certainty. Where no frame is left, the recorder's names and roles stand in.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from devtrace.diagnosis.evidence.access_paths import AccessPath
from devtrace.diagnosis.evidence.moves import (
    Move,
    move_of,
    moves_of,
    moves_of_holders,
    moves_of_modules,
    moves_of_one,
    sent_to,
    was_attached_after,
)
from devtrace.diagnosis.evidence.subject import Subject
from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.source.object_walk import registered
from devtrace.trace.ids import OpId, TensorId


@dataclass(frozen=True)
class Ownership:
    """Outermost module whose `.to()` should move the tensor, and its tensors on the expected device."""

    subject: Subject
    names: tuple[AccessPath, ...]  # names of a parameter or buffer; none where only recorded names are left
    module: AccessPath | None
    others: tuple[tuple[str, TensorId], ...]  # path and row
    is_registered: bool = True  # False for a plain attribute, by its recorded role

    @property
    def is_live(self) -> bool:
        return bool(self.names)

    @property
    def name(self) -> AccessPath | None:
        return self.names[0] if self.names else None

    @cached_property
    def last_move(self) -> Move | None:
        """Last move of the module's other tensors to the expected device."""
        queries = self.subject.queries
        moves = moves_of(queries, (row for _, row in self.others))
        if self.is_live:
            moves = moves_of_holders(queries, self.subject.row, moves) or self._moves_of_former
        return moves[0] if moves else None

    @cached_property
    def _moves_of_former(self) -> list[Move]:
        """Return the moves of a module's former tensors, before `load_state_dict(assign=True)`."""
        if self.others or self.module is None:
            return []
        kind, subject = type(self.module.last.value).__name__, self.subject
        moves = moves_of_modules(subject.queries, subject.row, kind, subject.expected_device)
        made, saw_ops = subject.queries.producer(subject.base), subject.queries.evidence.saw_ops
        made = OpId(made + (made >= 0 and not subject.queries.is_kind("copy")[made]))  # a move's own op copies
        return [move for move in moves if made > move.op or (not saw_ops and subject.birth < 0)]

    @property
    def was_replaced(self) -> bool:
        """True if the module's tensors replaced ones that had moved."""
        return self.last_move is not None and self.last_move in self._moves_of_former

    @cached_property
    def is_newer_than_the_move(self) -> bool:
        """True if the tensor was made or registered, or its module attached, after the last move."""
        move, subject = self.last_move, self.subject
        if move is None:
            return False
        if self.was_replaced:
            return True
        return subject.birth > move.op or was_attached_after(subject.queries, subject.row, move)

    @cached_property
    def was_moved_as_a_whole(self) -> bool:
        """True if the last move took along tensors of several children."""
        if self.last_move is None or not self.is_live:
            return False
        queries, site = self.subject.queries, self.last_move.site
        moves = ((path, move_of(queries, row)) for path, row in self.others)
        return len({path.split(".")[0] for path, move in moves if move is not None and move.site == site}) > 1

    @cached_property
    def sent_away(self) -> Move | None:
        """Copy of the tensor from the expected device to the odd one, if nothing moved the module after it."""
        subject = self.subject
        move = move_of(subject.queries, subject.row) if self.is_live else None
        if move is None or not subject.is_expected(move.source):
            return None
        if subject.queries.base(move.result) != subject.base:
            return None
        return move if self.last_move is None or move.op > self.last_move.op else None


def find_ownership(subject: Subject) -> Ownership | None:
    """Return who owns a parameter or buffer, or None if no module does.

    Of several owners it is the first that has tensors on the expected device: `net` of `net.head = head`.
    """
    owned = [name for name in subject.names if name.last.kind in ("parameter", "buffer")]
    owned = [name for name in owned if any(name.registered_from(index) for index, _ in name.modules())]
    if not owned:
        return None if subject.moment.frames else _recorded_ownership(subject)
    owners = [_owner(subject, name) for name in owned]
    name, module, others = next((each for each in owners if each[2]), owners[0])
    names = (name, *(each for each in owned if each is not name))
    return Ownership(subject, names, module, others)


def _owner(subject: Subject, name: AccessPath) -> tuple[AccessPath, AccessPath, tuple[tuple[str, TensorId], ...]]:
    """Return a name, the outermost module that registers its tensor, and that module's expected tensors."""
    index, module = next((index, module) for index, module in name.modules() if name.registered_from(index))
    return name, name.prefix(index + 1), expected_tensors(subject, module)


def _recorded_ownership(subject: Subject) -> Ownership | None:
    """Return who owns a tensor by the name and the role that the recorder noted."""
    tensors = subject.queries.trace.tensors
    role = tensors.raw("role", subject.base)
    if role not in ("parameter", "buffer", "attribute"):
        return None
    root = str(tensors.raw("name", subject.base)).split(".")[0]
    paths = [(str(tensors.raw("name", row)), row) for row in rows_of_modules(subject.queries)]
    others = tuple((path, row) for path, row in paths if path.split(".")[0] == root and subject.is_expected(row))
    return Ownership(subject, (), None, others, is_registered=role != "attribute")


def rows_of_modules(queries: TraceQueries, *roles: str) -> list[TensorId]:
    """Return the tensors that are parameters, buffers or attributes of modules, by their recorded roles."""
    ids = {queries.strings.get(role, -2) for role in roles or ("parameter", "buffer", "attribute")}
    return [TensorId(row) for row, role in enumerate(queries.trace.tensors.ints("role").tolist()) if role in ids]


@dataclass(frozen=True)
class PassingMove:
    """Module on a tensor's path that moved without the tensor, because of an unregistered step between."""

    name: AccessPath
    module: AccessPath
    moves: tuple[Move, ...]  # of the module's tensors, the last one first


def find_passing_move(subject: Subject, names: Iterable[AccessPath]) -> PassingMove | None:
    """Return the first module, by name and outermost first, that moved and passed the tensor by."""
    for name in names:
        for index, module in name.modules():
            if name.registered_from(index):
                continue
            moves = moves_of(subject.queries, (row for _, row in expected_tensors(subject, module)))
            if not moves and not any(subject.moment.row(tensor) is not None for _, tensor in registered(module)):
                moves = _moves_of_unused(subject, name.prefix(index + 1))
            if moves:
                return PassingMove(name, name.prefix(index + 1), tuple(moves))
    return None


def _moves_of_unused(subject: Subject, module: AccessPath) -> list[Move]:
    """Return the moves to the expected device of a module without tensors in the trace."""
    found = moves_of_one(subject.queries, type(module.last.value).__name__, module.text)
    if next(registered(module.last.value), None) is not None:
        last = max(found, key=lambda move: move.op, default=None)
        before = [last] if last is not None and last.op < 0 else []  # the recording
        return sent_to(before, subject.row, subject.expected_device)
    moves = sent_to((move for move in found if not move.tensors), subject.row, subject.expected_device)
    if _was_read_in_a_constructor(subject):  # which ends before its module can be moved
        moves = [replace(move, op=max(move.op, OpId(subject.birth + 1))) for move in moves]
    return [move for move in moves if subject.birth < move.op <= subject.op or subject.birth == move.op == -1]


def _was_read_in_a_constructor(subject: Subject) -> bool:
    """Return whether the tensor was made in its module's constructor, by the source alone."""
    site = subject.queries.site(subject.born)
    return not subject.queries.evidence.saw_ops and site is not None and site.function.endswith("__init__")


def expected_tensors(subject: Subject, module: Any) -> tuple[tuple[str, TensorId], ...]:
    """Return path and row of a module's own tensors that are on the expected device."""
    rows = ((path, _when_it_failed(subject, subject.moment.row(tensor))) for path, tensor in registered(module))
    return tuple((path, row) for path, row in rows if row is not None and subject.is_expected(row))


def _when_it_failed(subject: Subject, row: TensorId | None) -> TensorId | None:
    """Return the row of a module's tensor at the failure, before moves of a trainer that cleans up."""
    queries = subject.queries
    while row is not None and queries.producer(row) > subject.op and queries.source(row) >= 0:
        row = queries.source(row)
    return row
