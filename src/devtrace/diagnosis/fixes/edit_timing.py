"""Whether an edit has the same effect at its line, and in the next round of a loop, as where the program failed.

ema = copy.deepcopy(net)                                    # an edit below: ema.to(next(net.parameters()).device)
net = accelerator.prepare(net)                              # too early: this line moves net
avg = state["avg"]                                          # an edit below: avg = avg.to(grad.device)
avg.mul_(0.9).add_(grad)                                    # in vain: what the state keeps is not what changes
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from devtrace.diagnosis.edits import Edited
from devtrace.diagnosis.evidence.execution_order import Passed, maker_at
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.mismatch_case import MismatchCase
from devtrace.diagnosis.evidence.torchs_sentences import taken_on_host
from devtrace.diagnosis.evidence.trace_queries import HOST
from devtrace.diagnosis.findings import Edit, Site
from devtrace.diagnosis.fixes.fix import Fix
from devtrace.source import kinds
from devtrace.source.flow import binds, is_written_in, parameters, values_given
from devtrace.source.matching import called_name, calls_in, match_code, names_in, nodes_of, owner_of, run_names
from devtrace.source.object_walk import is_tensor, registered
from devtrace.source.parsing import Source, kept_with_source
from devtrace.source.safe_values import evaluate, values
from devtrace.source.vocabulary import is_move
from devtrace.trace.ids import NO_OP, OpId, TensorId

_DEEPEST: Final = 4


def is_too_early(case: MismatchCase, fix: Fix) -> bool:
    """Return whether an edit would read a device before a later line changes it."""
    since = min((moved.since for moved in fix.moved), default=case.op)
    return any(_is_later(case, frame, edit, owner, since) for frame, edit, owner in _devices_read(case, fix))


def _devices_read(case: MismatchCase, fix: Fix) -> Iterator[tuple[FailingFrame, Edit, ast.expr]]:
    """Yield the objects whose device new code reads: `x` of `x.device` and `next(x.parameters()).device`."""
    for frame, edit, edited in _edited_frames(case, fix):
        for node in nodes_of(ast.Attribute, edited.source.tree):
            if node.attr == "device":
                inner = match_code("next($x.parameters())", node.value)
                if edited.first <= edited.source.span(node).line <= edited.last:
                    yield frame, edit, inner["x"] if inner is not None else node.value


def _edited_frames(case: MismatchCase, fix: Fix) -> Iterator[tuple[FailingFrame, Edit, Edited]]:
    for edit in fix.edits:
        for frame in (each for each in FailingFrame.all_of(case.moment, case.expected_device) if each.has(edit)):
            body, edited = frame.source.span(frame.body), Edited.of(frame.source, edit)
            is_here = frame.function is None or body.line <= edit.line <= body.end_line
            if edited is not None and is_here:
                yield frame, edit, edited
                break


def _is_later(case: MismatchCase, frame: FailingFrame, edit: Edit, owner: ast.expr, since: OpId) -> bool:
    value = evaluate(owner, frame.scope())
    is_module = kinds.is_module(value)
    if is_module or is_tensor(value):
        rows = [case.moment.row(each) for each in ([each for _, each in registered(value)] if is_module else [value])]
        there = next((row for row in rows if row is not None and case.is_expected(row)), None)
        if _was_there(frame, edit, owner, may_have_moved=is_module):
            return False
        moved = case.queries.producer(case.queries.base(there)) if there is not None else NO_OP
        is_later = moved >= since and not Passed.below(frame, edit.line).has_run(moved)
        return there is not None and (is_later or (is_module and _may_move_below(case, frame, edit, owner, moved)))
    root = ast.unparse(owner).partition(".")[0]
    return any(edit.line < frame.source.span(each).line < frame.line for each in frame.bindings(root))


def _may_move_below(case: MismatchCase, frame: FailingFrame, edit: Edit, owner: ast.expr, op: OpId) -> bool:
    """Return whether a module's move may run below an edit; of an unrecorded move only the line is known.

    weights = Weights(3)             # too early below this line
    trainer = Trainer(net, weights)  # its `__init__` moves net
    """
    moved = case.queries.site(case.queries.op_site(op))
    if moved is None or case.queries.evidence.saw_ops:
        return False
    if (moved.file, moved.function) == (frame.code.site.file, frame.code.site.function):
        return moved.line > edit.line
    span, maker = frame.source.span, maker_at(moved)
    ended = [each for each in frame.statements() if span(each).end_line < frame.line]
    if any(maker in run_names(each) for each in ended if span(each).end_line <= edit.line):
        return False
    handed = getattr(owner, "id", "") or getattr(owner, "attr", "")
    below = any({maker, handed} & run_names(each) for each in ended if span(each).line > edit.line)
    return below or _is_run_by_the_failing_line(frame, moved, maker)


def _is_run_by_the_failing_line(frame: FailingFrame, site: Site, maker: str) -> bool:
    """Return whether the failing line calls a function, directly or not: `Trainer(net).fit()`."""
    inner, moment = range(frame.number), frame.moment
    is_called = maker in run_names(frame.expression) or any(moment.calls(each, maker) for each in inner)
    return is_called or moment.frame_of(site) in inner


def _was_there(frame: FailingFrame, edit: Edit, owner: ast.expr, *, may_have_moved: bool) -> bool:
    """Return whether a variable, or its item, had at the edit's line its present value, or a source of it."""
    name, line = ast.unparse(owner), edit.line
    item = match_code("$list[$index]", owner)
    whole = ast.unparse(item["list"]) if item is not None else name
    updated = any(frame.source.span(each).line >= line for each in frame.bindings(name))  # `x = self.layer(x)`
    is_there = whole in frame.bound(line) and all(frame.is_itself(each, line) for each in (whole, name))
    return (updated or not may_have_moved) and is_there


def is_in_vain(case: MismatchCase, fix: Fix) -> bool:
    """Return whether an edit gives a variable a copy of another's tensor, which is then changed in place."""
    for frame, edit, edited in _edited_frames(case, fix):
        below = [each for each in frame.statements() if frame.source.span(each).line > edit.line]
        for statement in edited.statements():
            for variable, value in values_given(edited.source, statement).items():
                moved = owner_of(value) if is_move(called_name(value)) else None
                is_kept = moved is not None and _is_kept(frame, moved, variable)
                if is_kept and is_written_in(below, variable):
                    return True
    return False


def _is_kept(frame: FailingFrame, moved: ast.expr, variable: str) -> bool:
    """Return whether the moved tensor is also an item, an attribute or the caller's."""
    match moved:
        case ast.Subscript() | ast.Attribute():
            return True
        case ast.Name(id=name) if name == variable:
            bound = frame.bindings(variable)[-1:]
            given = (values_given(frame.source, each).get(variable) for each in bound)
            kept = any(each is not None and _is_kept(frame, each, "") for each in given)
            return kept or (not bound and variable in parameters(frame.body))
    return False


# The next round of a loop.


def lasts(case: MismatchCase, edit: Edit) -> bool:
    """Return whether the edit's variable stays on its device in the next round of each loop around the error.

    token = torch.zeros(n, device=x.device)      # the edit
    for t in range(length):
        h = self.cell(self.embed(token), h)      # failed here
        token = teacher[:, t]                    # on the CPU: it would fail here again
    """
    for frame in (each for each in FailingFrame.all_of(case.moment, case.expected_device) if each.has(edit)):
        names = _assigned_by(frame, edit) & names_in(frame.expression)
        around = frame.source.ancestors(frame.source_node.statement) if names else ()
        loops = (each for each in around if isinstance(each, ast.For | ast.While))
        for loop in (each for each in loops if frame.source.span(each).line > edit.line):
            round = [each for each in frame.statements() if loop in frame.source.ancestors(each) and each is not loop]
            if not all(_Round(case, frame, names, round).is_known(name) for name in names):
                return False
    return True


def _assigned_by(frame: FailingFrame, edit: Edit) -> set[str]:
    """Return the variables that an edit assigns."""
    edited, own = Edited.of(frame.source, edit), getattr(frame.function, "name", None)
    new = edited.statements() if edited is not None else ()
    given = (each for each in new if edited is not None and getattr(edited.source.function(each), "name", None) == own)
    return {name for each in given if isinstance(each, ast.Assign) for name in binds(each)}


@dataclass(frozen=True)
class _Round:
    """Statements of a loop, and the variables that the edit has put on the expected device."""

    case: MismatchCase
    frame: FailingFrame
    names: set[str]
    statements: list[ast.stmt]

    def is_known(self, name: str, depth: int = _DEEPEST) -> bool:
        """Return whether all values of a name in the round are computed on the expected device."""
        binding = [each for each in self.statements if name in binds(each)]
        return depth > 0 and all(self._is_computed_there(each, depth) for each in binding)

    def _is_computed_there(self, statement: ast.stmt, depth: int) -> bool:
        """Return whether a statement takes something from the expected device, and nothing from elsewhere."""
        if not isinstance(statement, ast.Assign):
            return isinstance(statement, ast.AugAssign)
        found = values(statement.value, self.frame.source, self.frame.scope())
        devices = {self._device(each.value) for each in found if each.text not in self.names} - {""}
        valued = {each.text.partition(".")[0] for each in found}
        for name in names_in(statement.value) - valued - self.names:  # it has no value yet in this round
            if any(name in binds(each) for each in self.statements):
                devices.add(self.case.expected_device if self.is_known(name, depth - 1) else "")
        return devices == {self.case.expected_device}

    def _device(self, value: object) -> str:
        """Return the device of a tensor or of a module's first parameter; empty for anything else."""
        tensor = kinds.first_parameter(value) if kinds.is_module(value) else value
        row = self.case.moment.row(tensor) if is_tensor(tensor) else None
        return self.case.queries.trait(row) if row is not None and self.case.queries.dims[row] > 0 else ""


# Calls above that take it on the CPU only: the lengths of `pack_padded_sequence`, `x.numpy()`.


def moves_what_stays(case: MismatchCase, fix: Fix) -> bool:
    """Return whether an edit would move a tensor that an earlier line needs on the CPU."""
    if case.queries.of == "dtype" or case.expected_device == HOST:
        return False
    base = case.queries.base
    bases = {base(moved.row) for moved in fix.moved}
    return any(
        base(row) in bases and any(_comes_before(edit, frame, line) for edit in fix.edits)
        for frame in FailingFrame.all_of(case.moment, case.expected_device, to_read=True)
        for line, row in _taken_above(frame)
    )


def _taken_above(frame: FailingFrame) -> Iterator[tuple[int, TensorId]]:
    """Yield the lines above a frame's own that take a tensor on the CPU only, with its row."""
    for line, taken in _taken_in(frame.source, frame.body):
        row = frame.moment.row(evaluate(taken, frame.scope())) if line < frame.line else None
        if row is not None:
            yield line, row


@kept_with_source
def _taken_in(source: Source, body: ast.AST) -> list[tuple[int, ast.expr]]:
    """Return the CPU-only arguments of a function's calls, with their lines."""
    found = ((source.span(call).line, taken_on_host(call)) for call in calls_in(body))
    return [(line, taken) for line, taken in found if taken is not None]


def _comes_before(edit: Edit, frame: FailingFrame, line: int) -> bool:
    """Return whether an edit is above a line of a frame's function, or in another function."""
    span = frame.source.span(frame.body) if frame.function is not None else None
    first, last = (span.line, span.end_line) if span is not None else (1, edit.line)
    return edit.file != frame.source.file or not first <= edit.line <= last or edit.line < line
