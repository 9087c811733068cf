"""Moves that a tensor missed: of the module that holds it, of its original, of a neighbour, of a dropped copy.

Names of objects tell which module holds it. Where no frame is left, the recorder's names and roles stand in.
"""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from devtrace.diagnosis.evidence import modules
from devtrace.diagnosis.evidence.access_paths import NO_PATH, AccessPath
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.moves import Move, holders, modules_moved_at, move_of, moves_from, moves_of
from devtrace.diagnosis.evidence.origins import factory_call, lineage
from devtrace.diagnosis.evidence.subject import Subject
from devtrace.source import kinds
from devtrace.source.defuse import loops_around
from devtrace.source.matching import alone, match_code, variable
from devtrace.source.object_walk import registered
from devtrace.source.safe_values import kept_defaults
from devtrace.trace.ids import NO_SITE, ModuleId, OpId, TensorId
from devtrace.trace.rows import Move as MoveRow


@dataclass(frozen=True)
class Ownership:
    """Outermost module whose `.to()` should move the tensor."""

    subject: Subject
    names: tuple[AccessPath, ...]  # names of a parameter or buffer; none where only recorded names are left
    module: AccessPath
    others: tuple[tuple[str, TensorId], ...]  # its tensors on the expected device: path and row
    is_registered: bool = True  # False for a plain attribute, by its recorded role

    @property
    def is_live(self) -> bool:
        return bool(self.names)

    @property
    def name(self) -> AccessPath:
        return self.names[0] if self.names else NO_PATH

    @cached_property
    def last_move(self) -> Move | None:
        """Last move of the module's other tensors to the expected device."""
        moves = moves_of(self.subject.queries, (row for _, row in self.others))
        if self.is_live:
            pairs = ((move, modules_moved_at(self.subject.queries, move.site)) for move in moves)
            own = set(self._holders)  # a move outside any module's move is of them, too
            own_moves = [move for move, moved in pairs if not (own and moved) or not own.isdisjoint(moved)]
            moves = own_moves or self._moves_of_former
        return moves[0] if moves else None

    @cached_property
    def _moves_of_former(self) -> list[Move]:
        """Return the moves of a module's former tensors, before `load_state_dict(assign=True)`."""
        if self.others or self.module is NO_PATH:
            return []
        kind, subject = type(self.module.last.value).__name__, self.subject
        of_kind = (move for move in subject.queries.trace.moves if move.module.type == kind)
        moves = _sent_to((move for move in of_kind if move.module.id in self._holders), subject)
        producer, saw_ops = subject.queries.producer(subject.base), subject.queries.evidence.saw_ops
        made = producer + (producer >= 0 and not subject.queries.is_kind("copy")[producer])  # a move's own op copies
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
        return self.was_replaced or subject.birth > move.op or self._was_attached_after(move)

    def _was_attached_after(self, move: Move) -> bool:
        """Return whether a module that holds the tensor became part of the moved one only after the move."""
        table, moved = self.subject.queries.trace.modules, modules_moved_at(self.subject.queries, move.site)
        depth = next((depth for depth, module in enumerate(self._holders) if module in moved), 0)
        parts = (module for module in self._holders[:depth] if table.number("site", module) >= 0)
        return any(table.number("op", module) > moved[self._holders[depth]] for module in parts)

    @cached_property
    def _holders(self) -> list[ModuleId]:
        return holders(self.subject.queries, self.subject.base)

    @cached_property
    def was_moved_as_a_whole(self) -> bool:
        """True if the last move took along tensors of several children; `p.data = p.data.half()` is of each alone."""
        queries, move = self.subject.queries, self.last_move
        if move is None or not self.is_live or not modules_moved_at(queries, move.site):
            return False
        moves = ((path, move_of(queries, row)) for path, row in self.others)
        return len({path.split(".")[0] for path, last in moves if last is not None and last.site == move.site}) > 1

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
    owners = list[Ownership]()
    for name in subject.names:
        outermost = [(index, module) for index, module in name.modules() if name.registered_from(index)][:1]
        for index, module in outermost if name.last.kind in ("parameter", "buffer") else ():
            owners.append(Ownership(subject, (name,), name.prefix(index + 1), expected_tensors(subject, module)))
    if not owners:
        return None if subject.moment.frames or subject.names else _recorded_ownership(subject)
    best = next((owner for owner in owners if owner.others), owners[0])
    return replace(best, names=(*best.names, *(name for owner in owners for name in owner.names if owner is not best)))


def _recorded_ownership(subject: Subject) -> Ownership | None:
    """Return who owns a tensor by the name and the role that the recorder noted."""
    tensors = subject.queries.trace.tensors
    role = tensors.raw("role", subject.base)
    if role not in ("parameter", "buffer", "attribute"):
        return None
    root = str(tensors.raw("name", subject.base)).split(".")[0]
    of_root = modules.tensors(subject.queries, below=root)
    others = tuple((path, row) for path, row in of_root if subject.is_expected(row))
    return Ownership(subject, (), NO_PATH, others, is_registered=role != "attribute")


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
    kind = type(module.last.value).__name__
    of_kind = [move for move in subject.queries.trace.moves if move.module.type == kind]
    is_the_only_one = len({move.module.id for move in of_kind}) == 1
    moves = [move for move in of_kind if is_the_only_one or move.module.path == module.text]
    if next(registered(module.last.value), None) is not None:
        last = max(moves, key=lambda move: move.op, default=None)
        before_the_recording = [last] if last is not None and last.op < 0 else []
        return _sent_to(before_the_recording, subject)
    to_the_device = _sent_to((move for move in moves if not move.tensors), subject)
    site = subject.queries.site(subject.born)
    is_of_a_constructor = site is not None and site.function.endswith("__init__")
    if is_of_a_constructor and not subject.queries.evidence.saw_ops:  # it ends before its module can be moved
        to_the_device = [replace(move, op=max(move.op, OpId(subject.birth + 1))) for move in to_the_device]
    return [move for move in to_the_device if subject.birth < move.op <= subject.op or subject.birth == move.op == -1]


def _sent_to(moves: Iterable[MoveRow], subject: Subject) -> list[Move]:
    """Return the moves of modules to the expected device as moves of a tensor that they missed, the last one first."""
    fitting = (move for move in moves if move.device is not None and str(move.device) == subject.expected_trait)
    sites = ((move.op, move.site.id if move.site is not None else NO_SITE) for move in fitting)
    return sorted((Move(op, site, subject.row, subject.row) for op, site in sites), key=lambda move: -move.op)


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


# Moves of other tensors.


def moves_of_lineage(subject: Subject, first: int = 0) -> Iterator[Move]:
    """Yield the moves of a tensor, its views and its originals to the expected device; with `first=1` not its own."""
    bases = {subject.queries.base(row) for row in lineage(subject.queries, subject.row)[first:]}
    return moves_from(subject.queries, bases, subject.expected_trait, subject.op)


def move_of_the_original(subject: Subject) -> Move | None:
    """Return the first move, after the tensor was made, of the parameter or buffer that it is a copy of."""
    for move in moves_of_lineage(subject, 1):
        is_of_a_module = subject.queries.is_of_a_module(move.result) or subject.moment.is_registered(move.result)
        if move.op > subject.birth and is_of_a_module:
            return move
    return None


def move_of_a_neighbour(subject: Subject) -> Move | None:
    """Return the move of a neighbour to the expected device: another item of the batch, another variable."""
    has_owner = any(name.last.owner is not None for name in subject.names)
    if subject.names and all(_was_there_before(subject, name) for name in subject.names):
        return None
    for neighbour in subject.moment.siblings(subject.names):
        row = subject.moment.row(neighbour)
        move = move_of(subject.queries, row) if row is not None and subject.is_expected(row) else None
        if move is None or move.op <= subject.birth or not (has_owner or move.op >= 0):
            continue
        mover = subject.queries.op_node(move.op)
        if subject.queries.is_of_a_module(move.result) or factory_call(mover) is mover.node:
            continue  # a layer was moved, whose result this is; or nothing was: `torch.tensor(0.0, device=d)`
        return move if not _is_moved_more_often(subject, move) and not _may_be_younger(subject, move) else None
    return None


def _was_there_before(subject: Subject, name: AccessPath) -> bool:
    """Return whether a name's value is older than the call of its function: a global, a closure's, a default."""
    if name.last.kind in ("closure", "global"):
        return True
    frame = subject.moment.frames[name.frame] if len(name.references) == 1 and name.frame >= 0 else None
    return frame is not None and kept_defaults(frame.f_code, frame.f_globals).get(name.text) is name.last.value


def _may_be_younger(subject: Subject, move: Move) -> bool:
    """Return whether a variable of unseen birth may be younger than a move: assigned below it, or in a deeper call."""
    site, is_seen = subject.queries.site(move.site), subject.queries.certainty(subject.row) == "seen"
    moving_frame = subject.moment.frame_of(site) if subject.birth < 0 or not is_seen else -1
    if site is None or moving_frame < 0:
        return False
    bindings = filter(None, map(subject.binding_of, subject.names))
    places = ((moving_frame - frame.number, frame.source.span(statement).line) for frame, statement in bindings)
    return any(calls_deeper > 0 or (calls_deeper == 0 and line > site.line) for calls_deeper, line in places)


def _is_moved_more_often(subject: Subject, move: Move) -> bool:
    """Return whether a batch moves in each round of a loop, and the tensor's variable is assigned above the loop."""
    moving_line = subject.queries.source_node(move.site)
    for frame, statement in filter(None, map(subject.binding_of, subject.names)):
        if moving_line.source is frame.source and moving_line.function is frame.function:
            return any(loop not in loops_around(frame.source, statement) for loop in moving_line.loops)
    return False


def dropped_results(subject: Subject) -> Iterator[tuple[AccessPath, FailingFrame, ast.stmt]]:
    """Yield `batch.x`, its frame and statement for `batch.to(device)` above the failing line that keeps no result."""
    for name in subject.names:
        root, frame = name.references[0], subject.frame_of(name)
        if len(name.references) < 2 or kinds.is_module(root.value):
            continue
        bindings = frame.bindings(root.text)
        binding_end = frame.source.span(bindings[-1]).end_line if bindings else 0
        for statement in frame.statements():
            if not binding_end < frame.source.span(statement).line < frame.line:
                continue
            call = match_code("$x.$move(...)", alone(statement))
            if call and call["move"] in subject.queries.move_methods and variable(call["x"]) == root.text:
                yield name, frame, statement
