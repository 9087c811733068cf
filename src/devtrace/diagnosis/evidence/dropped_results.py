"""Statements that move a whole object and drop what that returns: `batch.to(device)`, where `to` makes a new batch."""

import ast
from typing import NamedTuple

from devtrace.diagnosis.evidence import access_paths
from devtrace.diagnosis.evidence.access_paths import AccessPath
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.subject import Subject
from devtrace.source.matching import alone, match_code, variable


class DroppedResult(NamedTuple):
    """Name of a tensor in an object that a statement moved in vain, with that statement and its frame."""

    name: AccessPath
    frame: FailingFrame
    statement: ast.stmt


def dropped_result(subject: Subject) -> DroppedResult | None:
    """Return the last statement above the failing line that moved an object with the tensor, and kept nothing."""
    for name in subject.names:
        root = name.references[0]
        frame = FailingFrame.of(subject.snapshot, name.frame, subject.expected_device)
        if frame is None or len(name.references) < 2 or access_paths.is_module(root.value):
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
