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
    move_call, frame = case.queries.own_node(verdict.moved), case.frame_of(verdict.name)
    match = match_code("$x.$move(...)", alone(move_call.statement))
    if match is not None and not _is_of_an_ended_loop(move_call, match["x"], frame):
        calls = [(move_call.statement, match["x"]), *_siblings_that_drop(move_call, frame)]
        rows = [case.odd_row(evaluate(owner, frame.scope())) for _, owner in calls]
        moved = [Moved(row, verdict.move.op) for row in (case.row, *rows) if row is not None]
        names = [(statement, move_call.code.text(owner)) for statement, owner in calls]
        yield from _assign_results(move_call.code, names, moved)
    for name, frame, statement in itertools.islice(dropped_results(case), 1):  # an object's own `to`: `batch.to(d)`
        moved = [*Anchor(frame.code, statement, "below", frame).moved(case, name, *case.moment.beside(name))]
        yield from _assign_results(frame.code, [(statement, name.references[0].text)], moved)


def _assign_results(code: Code, dropped: list[tuple[ast.stmt, str]], moved: list[Moved]) -> Iterator[Fix]:
    texts = [f"{name} = {code.text(statement)}" for statement, name in dropped]
    edits = [code.replaced(statement, text) for (statement, _), text in zip(dropped, texts, strict=True)]
    yield from suggested(sentence("fixed.keep-result", code=one_line(texts[0])), *edits, moved=moved)


def _siblings_that_drop(call: SourceNode, frame: FailingFrame) -> Iterator[tuple[ast.stmt, ast.expr]]:
    """Yield sibling statements that drop the result of the same move, with their tensors."""
    source, match = call.code.source, match_code("$x.$move(...)", getattr(call.statement, "value", None))
    if match is None or source is not frame.source:
        return
    for statement in frame.statements():
        other = match_code("$x.$move(...)", alone(statement))
        is_sibling = statement is not call.statement and source.parent(statement) is source.parent(call.statement)
        if other is None or not is_sibling or other["move"] != match["move"] or not variable(other["x"]):
            continue
        if is_tensor(frame.variables.get(variable(other["x"]))) and not _is_of_an_ended_loop(call, other["x"], frame):
            yield statement, other["x"]


def _is_of_an_ended_loop(call: SourceNode, node: ast.expr, frame: FailingFrame) -> bool:
    """Return whether code is `x` of an ended loop `for x in xs:` around a call; its new value would not reach `xs`."""
    running = [*frame.source.ancestors(frame.source_node.statement)]
    ended = (loop for loop in only(ast.For, call.loops) if loop not in running)
    return any(variable(node) in assigned_names(loop.target) for loop in ended)


def leave_out_move(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Turn `x.cpu() * w` into `x * w`, and `[p.cpu() for p in params]` into `[p.clone() for p in params]`.

    What is kept or written into stays a copy, where it was.
    """
    for call, move in _move_that_sent_it(case, verdict):
        match = match_code("$x.cpu()", call.node) or match_code('$x.to("cpu")', call.node)
        if match is None or case.origin.row != case.row or not case.is_expected(move.source):
            continue
        is_operand = isinstance(call.source.parent(call.node), ast.BinOp | ast.UnaryOp | ast.Compare | ast.AugAssign)
        needs_no_copy = is_operand or called_name(match["x"]) == "clone"
        new = call.code.text(match["x"]) if needs_no_copy else call.code.called_on(match["x"], "clone()")
        yield from rewritten(call.code, {call.node: new}, "fixed.left-there", [Moved(move.result, move.op)])


def move_to_expected_trait(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Turn `y = x.to(first)`, which sent the tensor away, into `y = x.to(second)`; so `.cuda()` and `.cpu()`."""
    for call, move in _move_that_sent_it(case, verdict):
        frame, match = frame_at(case, move.site), match_code("$x.$move(...)", call.node)
        is_value = isinstance(call.statement, ast.Assign | ast.Return) and call.statement.value is call.node
        if not frame.is_there or match is None or match["move"] not in case.queries.move_methods or not is_value:
            continue
        line, in_module = call.source.span(call.node).line, kinds.is_module(frame.variables.get(frame.own))
        device = frame.device_code(line, call.node if in_module else None)
        new = call.code.called_on(match["x"], moving(device)) if device else ""
        yield from rewritten(call.code, {call.node: new}, "fixed.put-there", [Moved(move.result, move.op)])


def _move_that_sent_it(case: MismatchCase, verdict: Verdict) -> Iterator[tuple[SourceNode, Move]]:
    """Yield the call that sent the tensor away, with its move, if it sent no whole module."""
    if verdict.sent_by is not None and verdict.module is NO_PATH:
        yield case.queries.own_node(verdict.sent_by.site), verdict.sent_by


def change_the_word(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Turn the one `"cuda:1"` of a program whose variables name `cuda:0` into their variable."""
    birth = case.queries.own_node(verdict.born) if case.mismatch.is_meant else NOWHERE
    frame = frame_at(case, verdict.born)
    words = [constant for constant in nodes_of(ast.Constant, birth.node) if constant.value == case.odd_trait]
    for word in words if frame.is_there and len(words) == 1 else ():
        device = frame.device_code(birth.source.span(birth.node).line)
        moved = made_at(case, lambda call: call.source is birth.source and call.node is birth.node)
        new = birth.code.text_with(birth.statement, (word, device))
        yield from rewritten(birth.code, {word: device}, "fixed.put-there", moved, shown=new)


def copy_after_move(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Put the line that copies below the line that moves, where nothing between them needs the copy."""
    move_call = case.queries.own_node(verdict.moved)
    for name in case.names[:1] if case.name.is_state_of_an_optimizer else case.names:
        frame, copy_line = case.binding_of(name) or (None, bound_above(move_call, name.texts[0]))
        if copy_line is None or (frame is not None and move_call.source is not frame.source):
            continue
        move_line, code = move_call.statement, move_call.code
        constants = {node.value for node in nodes_of(ast.Constant, copy_line)}
        asks_for_it = case.odd_trait in constants | called_names(copy_line)  # `Average(model, device="cpu")`
        if _may_swap(move_call, copy_line) and not asks_for_it and not _only_renames(copy_line):
            text = code.text(copy_line)
            edits = (code.removed(copy_line), code.below(move_line, *text.split("\n")))
            help = sentence("fixed.copy-after-move", line=one_line(text), move=one_line(code.text(move_line)))
            rows = list(_odd_tensors_of_names(case, frame, copy_line))
            moved = Anchor(code, move_line, "below", frame).moved_rows(case, rows)
            yield from suggested(help, *edits, moved=moved)


def _odd_tensors_of_names(case: MismatchCase, frame: FailingFrame | None, assignment: ast.stmt) -> Iterator[TensorId]:
    """Yield the tensors on the odd device that a variable of an assignment leads to."""
    variables = set(assigned_names(assignment))
    for row in case.moment.by_row:
        paths = case.moment.names(row) if case.queries.trait(row) == case.odd_trait else []
        of_frame = (path for path in paths if frame is None or path.frame == frame.number)
        if any(path.references[0].key in variables for path in of_frame):
            yield row


def _only_renames(statement: ast.stmt) -> bool:
    """Return whether a statement only renames an attribute: `teacher = job.teacher`."""
    value = getattr(statement, "value", statement)
    return path_of(value) != "" and getattr(value, "attr", "") not in PARTS


def _may_swap(move_call: SourceNode, copy: ast.stmt) -> bool:
    """Return whether a copy may come below a move of its block: no line between uses it, or sets its source anew."""
    source, move = move_call.source, move_call.statement
    if not isinstance(copy, ast.Assign) or source.parent(copy) is not source.parent(move):
        return False
    first, last = source.span(copy), source.span(move)
    if first.line >= last.line or first.end_line != first.line:
        return False
    body = statements(move_call.function or source.tree)
    between = [line for line in body if first.line < source.span(line).line <= last.end_line]
    moves = [line for line in between if any(moves_itself(target.value, target.node) for target in targets(line))]
    new_values = {name for line in between if line not in moves for name in binds(line)}
    return names_in(*copy.targets).isdisjoint(names_in(*between)) and new_values.isdisjoint(names_in(copy.value))
