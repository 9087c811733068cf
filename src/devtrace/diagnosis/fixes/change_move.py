"""Changes a line that moves: keeps what it returns, gives it another device, leaves it out, or lets it come first."""

import ast
import itertools
from collections.abc import Iterator

from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.evidence.access_paths import NO_PATH
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.mismatch_case import MismatchCase, Verdict
from devtrace.diagnosis.evidence.missed_moves import dropped_results
from devtrace.diagnosis.evidence.moves import Move
from devtrace.diagnosis.evidence.source_text import bound_above
from devtrace.diagnosis.evidence.trace_queries import NOWHERE, SourceNode
from devtrace.diagnosis.fixes.changes import Anchor, moving, rewritten
from devtrace.diagnosis.fixes.fix import Fix, Moved, frame_at, made_at, suggested
from devtrace.source import kinds
from devtrace.source.defuse import binds, moves_itself, path_of, statements, targets
from devtrace.source.matching import (
    alone,
    assigned_names,
    called_name,
    called_names,
    match_code,
    names_in,
    nodes_of,
    only,
    variable,
)
from devtrace.source.object_walk import is_tensor
from devtrace.source.safe_values import evaluate
from devtrace.source.vocabulary import PARTS
from devtrace.trace.ids import TensorId
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import one_line


def keep_moved_result(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Turn `x.to(device)` on a line of its own into `x = x.to(device)`, and so the lines beside it."""
    if not verdict.dropped or verdict.move is None:
        return
    found, frame = case.queries.own_node(verdict.moved), case.frame_of(verdict.name)
    call = match_code("$x.$move(...)", alone(found.statement))
    if call is not None and not _is_loop_variable(found, call["x"], frame):
        moved = [(found.statement, call["x"]), *_dropped_likewise(found, frame)]
        rows = [case.odd_row(evaluate(owner, frame.scope())) for _, owner in moved]
        since = [Moved(row, verdict.move.op) for row in (case.row, *rows) if row is not None]
        yield from _kept(found.code, [(each, found.code.text(owner)) for each, owner in moved], since)
    for name, own, statement in itertools.islice(dropped_results(case), 1):  # an object's own `to`: `batch.to(device)`
        since = list(Anchor(own.code, statement, "below", own).moved(case, name, *case.moment.beside(name)))
        yield from _kept(own.code, [(statement, name.references[0].text)], since)


def _kept(code: Code, dropped: list[tuple[ast.stmt, str]], moved: list[Moved]) -> Iterator[Fix]:
    """Assign what statements drop to variables."""
    new = [(each, f"{name} = {code.text(each)}") for each, name in dropped]
    edits = (code.replaced(*each) for each in new)
    yield from suggested(sentence("fixed.keep-result", code=one_line(new[0][1])), *edits, moved=moved)


def _dropped_likewise(found: SourceNode, frame: FailingFrame) -> Iterator[tuple[ast.stmt, ast.expr]]:
    """Yield sibling statements that drop the result of the same move, with their tensors."""
    source, move = found.code.source, match_code("$x.$move(...)", getattr(found.statement, "value", None))
    if move is None or source is not frame.source:
        return
    for each in frame.statements():
        other = match_code("$x.$move(...)", alone(each))
        beside = each is not found.statement and source.parent(each) is source.parent(found.statement)
        if other is None or not beside or other["move"] != move["move"] or not variable(other["x"]):
            continue
        if is_tensor(frame.variables.get(variable(other["x"]))) and not _is_loop_variable(found, other["x"], frame):
            yield each, other["x"]


def _is_loop_variable(found: SourceNode, node: ast.expr, frame: FailingFrame) -> bool:
    """Return whether it is the variable of a loop that has ended: a new value for it would not reach the list."""
    running = [*frame.source.ancestors(frame.source_node.statement)]
    ended = (loop for loop in only(ast.For, found.loops) if loop not in running)
    return any(variable(node) in assigned_names(loop.target) for loop in ended)


def leave_out_move(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Turn `x.cpu() * w` into `x * w`, and `[p.cpu() for p in params]` into `[p.clone() for p in params]`.

    What is kept or written into stays a copy, where it was.
    """
    for found, move in _sending(case, verdict):
        call = match_code("$x.cpu()", found.node) or match_code('$x.to("cpu")', found.node)
        if call is None or case.origin.row != case.row or not case.is_expected(move.source):
            continue
        is_operand = isinstance(found.source.parent(found.node), ast.BinOp | ast.UnaryOp | ast.Compare | ast.AugAssign)
        needs_no_copy = is_operand or called_name(call["x"]) == "clone"
        new = found.code.text(call["x"]) if needs_no_copy else found.code.called_on(call["x"], "clone()")
        yield from rewritten(found.code, {found.node: new}, "fixed.left-there", [Moved(move.result, move.op)])


def move_to_expected_trait(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Turn `y = x.to(first)`, which sent the tensor away, into `y = x.to(second)`; so `.cuda()` and `.cpu()`."""
    for found, move in _sending(case, verdict):
        frame, call = frame_at(case, move.site), match_code("$x.$move(...)", found.node)
        is_value = isinstance(found.statement, ast.Assign | ast.Return) and found.statement.value is found.node
        if not frame.is_there or call is None or call["move"] not in case.queries.move_methods or not is_value:
            continue
        line, in_module = found.source.span(found.node).line, kinds.is_module(frame.variables.get(frame.own))
        device = frame.device_code(line, found.node if in_module else None)
        new = found.code.called_on(call["x"], moving(device)) if device else ""
        yield from rewritten(found.code, {found.node: new}, "fixed.put-there", [Moved(move.result, move.op)])


def _sending(case: MismatchCase, verdict: Verdict) -> Iterator[tuple[SourceNode, Move]]:
    """Yield the line that sent the tensor away, with the move, if it sent no module."""
    if verdict.sent_by is not None and verdict.module is NO_PATH:
        yield case.queries.own_node(verdict.sent_by.site), verdict.sent_by


def change_the_word(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Turn the one `"cuda:1"` of a program whose variables name `cuda:0` into their variable."""
    found = case.queries.own_node(verdict.born) if case.mismatch.is_meant else NOWHERE
    frame = frame_at(case, verdict.born)
    words = [each for each in nodes_of(ast.Constant, found.node) if each.value == case.odd_trait]
    if frame.is_there and len(words) == 1:
        device = frame.device_code(found.source.span(found.node).line)
        moved = made_at(case, lambda made: made.source is found.source and made.node is found.node)
        new = found.code.text_with(found.statement, (words[0], device))
        yield from rewritten(found.code, {words[0]: device}, "fixed.put-there", moved, shown=new)


def copy_after_move(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Put the line that copies below the line that moves, where nothing between them needs the copy."""
    found = case.queries.own_node(verdict.moved)
    for name in case.names[:1] if case.name.is_state_of_an_optimizer else case.names:
        frame, early = case.binding_of(name) or (None, bound_above(found, name.texts[0]))
        if early is None or (frame is not None and found.source is not frame.source):
            continue
        moving, code = found.statement, found.code
        constants = {node.value for node in nodes_of(ast.Constant, early)}
        asks_for_it = case.odd_trait in constants | called_names(early)  # `Average(model, device="cpu")`
        if _may_swap(found, early) and not asks_for_it and not _gives_another_name(early):
            text = code.text(early)
            edits = (code.removed(early), code.below(moving, *text.split("\n")))
            help = sentence("fixed.copy-after-move", line=one_line(text), move=one_line(code.text(moving)))
            rows = list(_made_at(case, frame, early))
            moved = Anchor(code, moving, "below", frame).moved_rows(case, rows)
            yield from suggested(help, *edits, moved=moved)


def _made_at(case: MismatchCase, frame: FailingFrame | None, early: ast.stmt) -> Iterator[TensorId]:
    """Yield the tensors that a variable of the statement leads to and that are on the odd device."""
    names = set(assigned_names(early))
    for row in case.moment.by_row:
        paths = case.moment.names(row) if case.queries.trait(row) == case.odd_trait else []
        theirs = (path for path in paths if frame is None or path.frame == frame.number)
        if any(path.references[0].key in names for path in theirs):
            yield row


def _gives_another_name(statement: ast.stmt) -> bool:
    """Return whether a statement only renames an attribute: `teacher = job.teacher`."""
    value = getattr(statement, "value", statement)
    return path_of(value) != "" and getattr(value, "attr", "") not in PARTS


def _may_swap(found: SourceNode, early: ast.stmt) -> bool:
    """Return whether both are statements of one block, and nothing from the next line to the move needs the copy."""
    source, moving = found.source, found.statement
    if not isinstance(early, ast.Assign) or source.parent(early) is not source.parent(moving):
        return False
    first, last = source.span(early), source.span(moving)
    if first.line >= last.line or first.end_line != first.line:
        return False
    body = statements(found.function or source.tree)
    between = [s for s in body if first.line < source.span(s).line <= last.end_line]
    moved = [each for each in between if any(moves_itself(one.value, one.node) for one in targets(each))]
    made_anew = {name for each in between if each not in moved for name in binds(each)}
    return names_in(*early.targets).isdisjoint(names_in(*between)) and made_anew.isdisjoint(names_in(early.value))
