"""What a line will stumble over next, once its failing op runs: other tensors of its expressions on the odd device."""

from __future__ import annotations

import ast
from typing import Final

from devtrace.diagnosis.evidence.case import Case
from devtrace.diagnosis.evidence.trace_queries import HOST
from devtrace.diagnosis.fixes.fix import failing_frame
from devtrace.source.matching import called_name
from devtrace.source.object_walk import is_tensor
from devtrace.source.parsing import Source
from devtrace.source.safe_values import values

_LEAVES_THE_DEVICE: Final = frozenset((
    "to", "cpu", "cuda", "numpy", "item", "tolist", "size", "dim", "numel", "len", "print", "type_as", "new_zeros",
    "is_tensor", "isinstance", "float", "int", "str", "range", "to_device",
))  # fmt: skip
_FACTS: Final = ("shape", "device", "dtype", "ndim", "T", "is_cuda", "requires_grad")


def rows_of_the_line(case: Case, moved: set[int]) -> tuple[int, ...]:
    """Return the tensors that the failing expression reads and that would still be on the odd device."""
    frame = failing_frame(case)
    if frame is None or case.odd_device != HOST:
        return ()
    found = []
    for each in values(frame.expression, frame.source, frame.scope()):
        row = case.snapshot.row(each.value) if is_tensor(each.value) else None
        if row is None or row in moved or case.queries.base(row) in moved or case.queries.dims[row] == 0:
            continue
        if case.queries.device(row) == case.odd_device and is_combined(each.node, frame.source):
            found.append(row)
    return tuple(dict.fromkeys(found))


def is_combined(node: ast.AST, source: Source) -> bool:
    """Return whether code combines a tensor as it is: not moved first, nor asked for its shape, nor an index."""
    inner = node
    for outer in list(source.ancestors(node))[1:]:
        if isinstance(outer, ast.stmt):
            return True
        if isinstance(outer, ast.Call) and called_name(outer) in _LEAVES_THE_DEVICE:
            return False
        if isinstance(outer, ast.Attribute) and outer.attr in _FACTS:
            return False
        if isinstance(outer, ast.Subscript) and outer.slice is inner:
            return False
        if isinstance(outer, ast.Lambda | ast.comprehension):
            return False
        inner = outer
    return True
