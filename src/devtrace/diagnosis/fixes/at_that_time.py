"""Whether an edit means at its line what it means where the program failed: names may hold other values by then.

ema = copy.deepcopy(net)                                    # an edit below: ema.to(next(net.parameters()).device)
net = accelerator.prepare(net)                              # too early: this line moves net
avg = state["avg"]                                          # an edit below: avg = avg.to(grad.device)
avg.mul_(0.9).add_(grad)                                    # in vain: what the state keeps is not what changes
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devtrace.diagnosis.edits import Edited
from devtrace.diagnosis.evidence import access_paths
from devtrace.diagnosis.evidence.case import Case
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.findings import Edit
from devtrace.diagnosis.fixes.fix import Fix
from devtrace.source.flow import is_written, parameters, values_given
from devtrace.source.matching import called_name, match_code, nodes_of, owner_of
from devtrace.source.object_walk import is_tensor, registered
from devtrace.source.safe_values import evaluate
from devtrace.source.vocabulary import is_move


def is_too_early(case: Case, fix: Fix) -> bool:
    """Return whether a device that an edit reads is another one yet when its line runs."""
    since = min((moved.since for moved in fix.moved), default=case.op)
    return any(_is_later(case, frame, edit, owner, since) for frame, edit, owner in _devices_read(case, fix))


def _devices_read(case: Case, fix: Fix) -> Iterator[tuple[FailingFrame, Edit, ast.expr]]:
    """Yield what new code asks for its device: `x` of `x.device` and of `next(x.parameters()).device`."""
    for frame, edit, edited in _edited_frames(case, fix):
        for node in nodes_of(ast.Attribute, edited.source.tree):
            if node.attr == "device":
                inner = match_code("next($x.parameters())", node.value)
                if edited.first <= edited.source.span(node).line <= edited.last:
                    yield frame, edit, inner["x"] if inner is not None else node.value


def _edited_frames(case: Case, fix: Fix) -> Iterator[tuple[FailingFrame, Edit, Edited]]:
    for edit in fix.edits:
        for frame in (each for each in FailingFrame.all_of(case.snapshot, case.expected_device) if each.has(edit)):
            body, edited = frame.source.span(frame.body), Edited.of(frame.source, edit)
            is_here = frame.function is None or body.line <= edit.line <= body.end_line
            if edited is not None and is_here:
                yield frame, edit, edited
                break


def _is_later(case: Case, frame: FailingFrame, edit: Edit, owner: ast.expr, since: int) -> bool:
    value = evaluate(owner, frame.scope())
    is_module = access_paths.is_module(value)
    if is_module or is_tensor(value):
        rows = [case.snapshot.row(each) for each in ([each for _, each in registered(value)] if is_module else [value])]
        there = next((row for row in rows if row is not None and case.is_expected(row)), None)
        if _was_there(frame, edit, owner, may_have_moved=is_module):
            return False
        return there is not None and case.queries.producer(case.queries.base(there)) >= since
    root = ast.unparse(owner).partition(".")[0]
    return any(edit.line < frame.source.span(each).line < frame.line for each in frame.bindings(root))


def _was_there(frame: FailingFrame, edit: Edit, owner: ast.expr, *, may_have_moved: bool) -> bool:
    """Return whether a variable had at the edit's line what it has now, or what that was computed from since."""
    name, line = ast.unparse(owner), edit.line
    updated = any(frame.source.span(each).line >= line for each in frame.bindings(name))  # `x = self.layer(x)`
    return (updated or not may_have_moved) and name in frame.bound(line) and frame.is_itself(name, line)


def is_in_vain(case: Case, fix: Fix) -> bool:
    """Return whether a variable gets a moved copy of what something else keeps, and is then changed in place."""
    for frame, edit, edited in _edited_frames(case, fix):
        below = [each for each in frame.statements() if frame.source.span(each).line > edit.line]
        for statement in edited.statements():
            for variable, value in values_given(edited.source, statement).items():
                moved = owner_of(value) if is_move(called_name(value)) else None
                is_kept = moved is not None and _is_kept(frame, moved, variable)
                if is_kept and any(is_written(node, variable) for each in below for node in ast.walk(each)):
                    return True
    return False


def _is_kept(frame: FailingFrame, moved: ast.expr, variable: str) -> bool:
    """Return whether what is moved is an item or an attribute of something, or the caller's."""
    match moved:
        case ast.Subscript() | ast.Attribute():
            return True
        case ast.Name(id=name) if name == variable:
            bound = frame.bindings(variable)[-1:]
            given = (values_given(frame.source, each).get(variable) for each in bound)
            kept = any(each is not None and _is_kept(frame, each, "") for each in given)
            return kept or (not bound and variable in parameters(frame.body))
    return False
