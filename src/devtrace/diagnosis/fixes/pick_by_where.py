"""`x[mask].sum()` becomes `torch.where(mask, x, 0).sum()`, whose shape the CPU knows without asking the device."""

from __future__ import annotations

import ast

from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.evidence.trace_queries import Rows, TraceQueries
from devtrace.diagnosis.fixes.fix import Fix, fix_if_complete
from devtrace.diagnosis.fixes.read_after_loop import names_of_modules
from devtrace.source.matching import match_code
from devtrace.words.catalogue import sentence


def pick_by_where(queries: TraceQueries, line: int, ops: Rows) -> Fix | None:
    """Return the fix, where a mask picks what is added up, and has the shape of what it picks from."""
    found, site = queries.source_node(line), queries.site(line)
    picked = match_code("$x[$mask]", found.node) if found is not None else None
    if found is None or site is None or picked is None or queries.package(line):
        return None
    attribute = found.source.parent(found.node)
    summed = found.source.parent(attribute) if attribute is not None else None
    if match_code("$picked.sum()", summed) is None or "torch" not in names_of_modules(found):
        return None
    if not all(_is_masked_whole(queries, op) for op in ops.tolist()):
        return None
    code = Code(found.source, site)
    x, mask = picked["x"], picked["mask"]
    if isinstance(mask, ast.Tuple | ast.Slice):
        return None
    new = f"torch.where({code.text(mask)}, {code.text(x)}, 0)"
    return fix_if_complete(sentence("fixed.pick-by-where", code=new), code.replaced(found.node, new))


def _is_masked_whole(queries: TraceQueries, op: int) -> bool:
    rows, tensors = queries.inputs(op), queries.trace.tensors
    if len(rows) != 2 or str(tensors.raw("dtype", rows[1])).removeprefix("torch.") != "bool":
        return False
    return tensors.number("shape", rows[0]) == tensors.number("shape", rows[1])
