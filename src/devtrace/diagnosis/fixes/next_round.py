"""Whether an edit still holds in the next round of a loop: its variable may get another value there.

token = torch.zeros(n, device=x.device)      # the edit
for t in range(length):
    h = self.cell(self.embed(token), h)      # failed here
    token = teacher[:, t]                    # on the CPU: it would fail here again
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devtrace.diagnosis.edits import applied
from devtrace.diagnosis.evidence import access_paths
from devtrace.diagnosis.evidence.bound_names import bound_by
from devtrace.diagnosis.evidence.case import Case
from devtrace.diagnosis.evidence.frame_code import FailingFrame, first_parameter
from devtrace.diagnosis.findings import Edit
from devtrace.source import parsing
from devtrace.source.matching import names_in
from devtrace.source.object_walk import is_tensor
from devtrace.source.safe_values import values


def lasts(case: Case, edit: Edit) -> bool:
    """Return whether no loop around an error gives what the edit assigns a value that may be elsewhere."""
    for number in range(len(case.snapshot.frames)):
        frame = FailingFrame.of(case.snapshot, number, case.expected_device)
        if frame is None or (frame.code.site.file, frame.code.site.cell) != (edit.file, edit.cell):
            continue
        names = _assigned_by(frame, edit) & names_in(frame.expression)
        for loop in _loops_below(frame, edit) if names else ():
            rebound = (each for each in frame.statements() if loop in frame.source.ancestors(each) and each is not loop)
            if any(names & bound_by(each) and not _is_known(each, names, frame, case) for each in rebound):
                return False
    return True


def _assigned_by(frame: FailingFrame, edit: Edit) -> set[str]:
    """Return the variables of the frame to which the lines of an edit give a value."""
    source = frame.source
    after = parsing.parse(applied(source.text, [edit], source.first, source.indent), source.file, source.first)
    first = edit.line if edit.before else edit.line + 1
    last = first + edit.after.count("\n")
    names = set[str]()
    for node in ast.walk(after.tree) if after is not None else ():
        if after is not None and isinstance(node, ast.Assign) and first <= after.span(node).line <= last:
            function = after.function(node)
            if getattr(function, "name", None) == getattr(frame.function, "name", None):
                names |= bound_by(node)
    return names


def _loops_below(frame: FailingFrame, edit: Edit) -> Iterator[ast.stmt]:
    """Yield the loops around what the frame runs that an edit stands above."""
    for outer in frame.source.ancestors(frame.source_node.statement):
        if isinstance(outer, ast.For | ast.While) and frame.source.span(outer).line > edit.line:
            yield outer


def _is_known(statement: ast.stmt, names: set[str], frame: FailingFrame, case: Case) -> bool:
    """Return whether a statement computes its value from what is on the expected device, by all that look-ups tell."""
    if not isinstance(statement, ast.Assign):
        return isinstance(statement, ast.AugAssign)
    there = False
    for each in values(statement.value, frame.source, frame.scope()):
        value = first_parameter(each.value) if access_paths.is_module(each.value) else each.value
        if each.text in names or not is_tensor(value):
            continue
        row = case.snapshot.row(value)
        if row is not None and case.queries.dims[row] > 0:
            if case.queries.device(row) != case.expected_device:
                return False
            there = True
    return there
