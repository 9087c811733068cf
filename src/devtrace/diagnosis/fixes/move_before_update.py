"""Above `self.sum += x`: `self.sum = self.sum.to(x.device)`, which from then on does nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devtrace.diagnosis.evidence.case import Case, Verdict
from devtrace.diagnosis.fixes.fix import Fix, Moved, failing_frame, siblings_on_odd_device, suggested
from devtrace.words.catalogue import sentence


def move_before_update(case: Case, verdict: Verdict) -> Iterator[Fix]:
    """Move the attribute or item, and its siblings, above the failing line, and keep them there."""
    frame = failing_frame(case)
    node = frame.node_of(case.odd_tensor) if frame is not None else None
    if frame is None or not isinstance(node, ast.Attribute | ast.Subscript):
        return
    device = frame.device_beside(node)
    paths = [frame.code.text(node), *_sibling_paths(case)]
    lines = [f"{path} = {path}.to({device})" for path in dict.fromkeys(paths)] if device else []
    if not lines:
        return
    edit = frame.code.above(frame.source_node.statement, *lines)
    moved = [Moved(case.odd_tensor, case.op)]
    yield from suggested(sentence("fixed.before-update", code=lines[0]), edit, moved=moved)


def _sibling_paths(case: Case) -> list[str]:
    """Return the tensors beside it, as the failing frame names them."""
    here = [name for name in case.names if name.frame == 0]
    siblings = siblings_on_odd_device(case, here[0]) if here and len(here[0].references) > 1 else ()
    return [path for name in siblings if (path := name.code)]
