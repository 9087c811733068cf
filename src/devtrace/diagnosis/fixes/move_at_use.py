"""`deep + stem` becomes `deep + stem.to(deep.device)`."""

from __future__ import annotations

import ast

from devtrace.diagnosis.evidence.case import Case, Verdict
from devtrace.diagnosis.fixes.fix import Fix, failing_frame, fix_if_complete
from devtrace.words.text_format import one_line


def move_at_use(case: Case, verdict: Verdict) -> Fix | None:
    """Move the tensor in the failing line; above it, if the function reads the tensor again."""
    frame = failing_frame(case)
    node = frame.node_of(case.odd_tensor) if frame is not None and not _writes_into_it(case) else None
    device = frame.device_beside(node) if frame is not None and node is not None else ""
    if frame is None or node is None or not device:
        return None
    new = frame.code.moved_to(node, device)
    again = [other for other in frame.loads(node) if other is not node]
    if again and isinstance(node, ast.Name):
        line = f"{node.id} = {new}"
        edit = frame.code.above(frame.source_node.statement, line)
        return fix_if_complete(f"move it before it is used: {line}", edit)
    return fix_if_complete(f"move it where it is used: {one_line(new)}", frame.code.replaced(node, new))


def _writes_into_it(case: Case) -> bool:
    """Return whether the failing op writes into the odd tensor: a moved copy of it would be written in vain."""
    op = case.queries.op_name(case.op).removeprefix("aten.").partition(".")[0]
    inputs = case.queries.inputs(case.op)
    return op.endswith("_") and not op.endswith("__") and inputs[:1] == [case.odd_tensor]
