"""Why a tensor is not where the computation is. A cause is a claim: each one here says what it was seen from.

The order is that of certainty. What holds the tensor (a parameter of a moved module, a plain attribute of one, an
optimizer's state) tells more than how it was made, and how it was made more than that nothing ever moved it.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

from devtrace.diagnosis.evidence import access_paths, origins
from devtrace.diagnosis.evidence.access_paths import AccessPath
from devtrace.diagnosis.evidence.case import Case, Verdict, outlives_the_call, rows_held_by_modules
from devtrace.diagnosis.evidence.origins import Move
from devtrace.diagnosis.evidence.trace_queries import HOST, TraceQueries
from devtrace.diagnosis.slugs import CauseSlug
from devtrace.source.object_walk import registered


def verdict(case: Case) -> Verdict:
    """The cause, by the first rule that has its evidence."""
    for rule in (
        _of_a_module,
        _of_an_optimizer,
        _copied_before_the_move,
        _beside_a_module,
        _from_a_root,
        _put_there,
        _by_default_device,
        _made_on_the_way,
        _left_by_a_move,
        _never_moved,
    ):
        found = rule(case)
        if found is not None:
            return found
    return Verdict("unknown", born=case.born, name=case.names[0] if case.names else None)


# What a module holds as its own.


def _of_a_module(case: Case) -> Verdict | None:
    """A parameter or buffer: attached after the move, or of a module that never moved, or that no module knows of."""
    owned = [name for name in case.names if name.last.kind in ("parameter", "buffer")]
    owned = [name for name in owned if any(name.registered_from(place) for place, _ in name.modules())]
    if not owned:
        return _by_recorded_name(case) if not case.snapshot.frames else None
    name = owned[0]
    root, module = _root(name)
    away = _sent_away(case)
    expected_device = _at_home(case, module)
    if expected_device:
        return _partly_moved(case, name, root, expected_device, away)
    if away is not None:
        return Verdict("wrong-device", born=away.site, name=name, module=_prefix(case, name, root), sent_by=away)
    unknown = next((found for other in owned if (found := _unknown_to_its_module(case, other)) is not None), None)
    if unknown is not None:
        return unknown
    stale = _copied_before_the_move(case)
    if stale is not None:
        return stale
    cause: CauseSlug = "never-moved" if case.odd_device == HOST else "wrong-device"
    return Verdict(cause, born=case.born, name=name, module=_prefix(case, name, root))


def _root(name: AccessPath) -> tuple[int, Any]:
    """The outermost module whose `.to()` reaches what is named, and its place."""
    return next((place, module) for place, module in name.modules() if name.registered_from(place))


def _prefix(case: Case, name: AccessPath, place: int) -> AccessPath:
    """The name of an object on the way."""
    return name.prefix(place + 1)


def _at_home(case: Case, module: Any) -> list[tuple[str, int]]:
    """The module's own tensors that are where the computation is: path and row."""
    found = []
    for path, tensor in registered(module):
        row = case.snapshot.row(tensor)
        if row is not None and case.queries.device(row) == case.expected_device:
            found.append((path, row))
    return found


def _moves(case: Case, rows: list[tuple[str, int]]) -> list[Move]:
    """How they got home, the last move first."""
    found = [move for _, row in rows if (move := origins.move_of(case.queries, row)) is not None]
    return sorted(found, key=lambda move: -move.op)


def _partly_moved(case: Case, name: AccessPath, root: int, beside: list[tuple[str, int]], away: Move | None) -> Verdict:
    """Some of the module's tensors are at home and this one is not."""
    moves = origins.moves_of_holders(case.queries, case.subject, _moves(case, beside))
    module = _prefix(case, name, root)
    if away is not None and (not moves or away.op > moves[0].op):
        return Verdict("wrong-device", born=away.site, name=name, module=module, sent_by=away, others=len(beside))
    if not moves:
        cause: CauseSlug = "never-moved" if case.odd_device == HOST else "wrong-device"
        return Verdict(cause, born=case.born, name=name, module=module, others=len(beside), certainty="inferred")
    last = moves[0]
    later = case.birth > last.op >= -1 and case.birth >= 0
    later = later or origins.was_attached_after(case.queries, case.subject, last)
    whole = _covers(case, name, root, last)
    if later or whole:
        return Verdict(
            "attached-after-move",
            born=case.born,
            name=name,
            module=module,
            move=last,
            others=len(beside),
            certainty="seen" if later else "inferred",
        )
    return Verdict("never-moved", born=case.born, name=name, module=module, move=last, others=len(beside))


def _covers(case: Case, name: AccessPath, root: int, move: Move) -> bool:
    """Whether a move of the whole tree came by: tensors of more than one of the root's children moved at one line."""
    module = name.objects[root]
    children = {
        path.split(".")[0]
        for path, row in _at_home(case, module)
        if (other := origins.move_of(case.queries, row)) is not None and other.site == move.site
    }
    return len(children) > 1


def _unknown_to_its_module(case: Case, name: AccessPath) -> Verdict | None:
    """A module further out was moved, and reaches this one only through what is not registered: a list, a dict."""
    for place, module in name.modules():
        moves = [] if name.registered_from(place) else _moves(case, _at_home(case, module))
        if moves:
            outer = _prefix(case, name, place)
            return Verdict("not-registered", case.born, name, outer, moves[0], others=len(moves))
    return None


def _sent_away(case: Case) -> Move | None:
    """The copy from where the computation is to where the tensor is."""
    move = origins.move_of(case.queries, case.subject)
    if move is None or case.queries.device(move.source) != case.expected_device:
        return None
    return move if case.queries.base(move.result) == case.queries.base(case.subject) else None


def _by_recorded_name(case: Case) -> Verdict | None:
    """Without live objects: what the recorder noted of names and roles."""
    tensors = case.queries.trace.tensors
    row = case.queries.base(case.subject)
    role, path = tensors.raw("role", row), str(tensors.raw("name", row))
    if role not in ("parameter", "buffer", "attribute"):
        return None
    root = path.split(".")[0]
    beside = [
        ("", other)
        for other in rows_held_by_modules(case.queries)
        if str(tensors.raw("name", other)).split(".")[0] == root and case.queries.device(other) == case.expected_device
    ]
    moves = _moves(case, beside)
    if not moves:
        return Verdict("never-moved", born=case.born, certainty="inferred")
    if role == "attribute":
        return Verdict("not-registered", born=case.born, move=moves[0], others=len(beside))
    later = case.birth > moves[0].op or origins.was_attached_after(case.queries, row, moves[0])
    cause: CauseSlug = "attached-after-move" if later else "never-moved"
    return Verdict(cause, born=case.born, move=moves[0], others=len(beside), certainty="inferred")


# What something else holds.


def _of_an_optimizer(case: Case) -> Verdict | None:
    """State that an optimizer keeps beside the parameters."""
    held = [name for name in case.names if any(access_paths.is_optimizer(value) for value in name.objects[:-1])]
    held = [name for name in held if any(hold.kind == "state" for hold in name.references)]
    if not held:
        return None
    stale = _copied_before_the_move(case)
    if stale is not None:
        return stale
    return Verdict("never-moved", born=case.born, name=held[0])


def _copied_before_the_move(case: Case) -> Verdict | None:
    """Made from a parameter by nothing but copying (clone, zeros_like) before that parameter was moved."""
    queries, row = case.queries, case.subject
    line = _lineage(queries, row)
    if len(line) < 2:
        return None
    moved = [
        move
        for move in origins.moves_from(
            queries, {queries.base(past) for past in line[1:]}, case.expected_device, case.op
        )
        if move.op > case.birth and _of_module_row(case, move.result)
    ]
    if not moved:
        return None
    name = case.names[0] if case.names else None
    return Verdict("stale-copy", born=case.born, name=name, move=moved[0])


def _lineage(queries: TraceQueries, row: int) -> list[int]:
    """The tensor, and what it is a copy, a view or a `_like` of, on the same device."""
    line = [row]
    while True:
        here = line[-1]
        op = queries.producer(here)
        like = op >= 0 and queries.kind(op) == "create" and queries.inputs(op)
        parents = queries.made_from(here) if queries.source(here) >= 0 else queries.inputs(op)[:1] if like else []
        parents = [parent for parent in parents if parent not in line and queries.device(parent) == queries.device(row)]
        if not parents or len(line) > 20:
            return line
        line.append(parents[0])


def _of_module_row(case: Case, row: int) -> bool:
    """Whether a tensor is a parameter or buffer."""
    if case.queries.trace.tensors.raw("role", row) in ("parameter", "buffer"):
        return True
    return any(name.last.kind in ("parameter", "buffer") for name in case.snapshot.names(row))


def _beside_a_module(case: Case) -> Verdict | None:
    """Held by a module that was moved, but not as parameter or buffer."""
    for name in case.names:
        for place, module in name.modules():
            if name.registered_from(place):
                continue
            moves = _moves(case, _at_home(case, module))
            if moves:
                return _unregistered(case, name, place, moves)
    return None


def _unregistered(case: Case, name: AccessPath, place: int, moves: list[Move]) -> Verdict:
    module = _prefix(case, name, place)
    cached = case.birth >= 0 and case.queries.trace.ops.number("call", case.birth) >= 0
    if cached and case.birth < moves[-1].op:
        return Verdict("stale-copy", case.born, name, module, moves[0], others=len(moves))
    if cached and case.origin.arrival == "made":
        return Verdict("created-without-device", case.born, name=name, module=module)
    return Verdict("not-registered", case.born, name, module, moves[0], others=len(moves))


def _from_a_root(case: Case) -> Verdict | None:
    """A passing value, computed from something lasting that is on the odd device: that is what should have moved."""
    if case.odd_device != HOST or any(outlives_the_call(name) for name in case.names) or not case.roots:
        return None
    rooted = [_of_root(case, row) for row in dict.fromkeys(row for row, _ in case.roots)]
    for rule in (_of_a_module, _beside_a_module):
        found = next((verdict for root in rooted if (verdict := rule(root)) is not None), None)
        if found is not None:
            return found
    if case.origin.arrival == "copied":
        return None
    return Verdict("never-moved", born=rooted[0].born, name=rooted[0].names[0])


def _of_root(case: Case, row: int) -> Case:
    """The same mismatch, with a root in place of what was computed from it."""
    return replace(case, subject=row, names=[name for root, name in case.roots if root == row], roots=[])


# How it was made.


def _put_there(case: Case) -> Verdict | None:
    """Somebody asked for this device: `.cuda()`, `device=self.device`, `.to(first)`."""
    if case.origin.arrival not in ("copied", "made-there"):
        return None
    name = case.names[0] if case.names else None
    move = origins.move_of(case.queries, case.subject)
    return Verdict("wrong-device", born=case.born, name=name, sent_by=move)


def _by_default_device(case: Case) -> Verdict | None:
    """A factory that was told nothing made it on an accelerator: a default device is set."""
    if case.origin.arrival != "made" or case.odd_device == HOST:
        return None
    return Verdict("default-device", born=case.born, name=case.names[0] if case.names else None)


def _made_on_the_way(case: Case) -> Verdict | None:
    """Made by a factory, without a device, while the computation was under way."""
    if case.origin.arrival != "made" or any(outlives_the_call(name) for name in case.names):
        return None
    if not _under_way(case, case.origin.op):
        return None
    born = case.queries.born(case.origin.row)
    return Verdict("created-without-device", born=born, name=case.names[0] if case.names else None)


def _under_way(case: Case, op: int) -> bool:
    """Whether an op ran in a module's call, or in a function that had a tensor of the home device at hand."""
    queries = case.queries
    if queries.trace.ops.number("call", op) >= 0 or queries.trace.ops.raw("phase", op) in ("backward", "optimizer"):
        return True
    site = queries.site(queries.trace.ops.number("site", op))
    if site is None:
        return False
    if _in_a_module(queries, site.function) or (not case.names and _on_the_failing_line(case, op)):
        return True
    frame = case.snapshot.frame_of(site)
    if frame is not None:
        return case.snapshot.given_tensors(frame, case.expected_device)
    return any(
        case.snapshot.given_tensors(number, case.expected_device) and case.snapshot.calls(number, site.function)
        for number in range(len(case.snapshot.frames))
    )


def _on_the_failing_line(case: Case, op: int) -> bool:
    """Whether an op is of the statement that failed: `grid + torch.arange(n)`."""
    ops = case.queries.trace.ops
    here, failed = (case.queries.source_node(ops.number("site", each)) for each in (op, case.op))
    return here is not None and failed is not None and here.statement is failed.statement


def _in_a_module(queries: TraceQueries, function: str) -> bool:
    """Whether a function is a method of a module that the trace knows, and not its constructor."""
    klass, _, method = function.rpartition(".")
    return bool(klass) and method != "__init__" and klass in {str(module.type) for module in queries.trace.modules}


def _left_by_a_move(case: Case) -> Verdict | None:
    """A copy of it is at home, but this is the one that was copied, or a view taken before."""
    queries = case.queries
    bases = {queries.base(row) for row in _lineage(queries, case.subject)}
    for move in origins.moves_from(queries, bases, case.expected_device, case.op):
        place = queries.source_node(move.site)
        name = case.names[0] if case.names else None
        if place is not None and isinstance(place.statement, ast.Expr) and place.statement.value is place.node:
            return Verdict("never-moved", case.born, name, move=move, dropped=True)
        return Verdict("stale-copy", case.born, name, move=move)
    return None


def _never_moved(case: Case) -> Verdict | None:
    """Nothing ever copied it to where the computation is."""
    if case.odd_device != HOST or (not case.names and case.born < 0):
        return None
    name = case.names[0] if case.names else None
    beside = _moved_beside(case)
    return Verdict("never-moved", born=case.born, name=name, move=beside)


def _moved_beside(case: Case) -> Move | None:
    """How the tensors that came with it got home: other items of the batch, other variables of the frame."""
    held = {id(name.last.owner): name for name in case.names if name.last.owner is not None}
    for sibling in case.snapshot.siblings(case.names):
        row = case.snapshot.row(sibling)
        if row is not None and case.queries.device(row) == case.expected_device:
            move = origins.move_of(case.queries, row)
            if move is not None and move.op > case.birth and (held or move.op >= 0):
                return move
    return None
