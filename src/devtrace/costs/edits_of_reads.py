"""Edits that wait less often: what each step reads of a device stays there, and is read below the loop at once.

The values are the very same.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Final

from devtrace.costs.loops import loops_around, uses_of, value_given
from devtrace.costs.reads import updated
from devtrace.costs.repeated_costs import Habit
from devtrace.costs.writes import are_written
from devtrace.diagnosis.evidence.trace_queries import SourceNode
from devtrace.diagnosis.fixes.fix import Fix, suggested
from devtrace.source.matching import alone, assigned_names, match_code, names_in, nodes_of, variable
from devtrace.words.catalogue import sentence

_FLOATS: Final = ("float64", "float32", "float16", "bfloat16")


def _filled(found: SourceNode, name: str) -> tuple[ast.stmt, ast.expr] | None:
    """Return the outermost loop that fills a variable, and the value of that above the loop.

    Only one statement fills it, and nothing looks at it before the loop ends.
    """
    source, uses = found.source, uses_of(found, name)
    if uses is None or any(source.function(use) is not source.function(found.node) for use in uses):
        return None
    for loop in reversed(loops_around(found)):
        above = [use for use in uses if source.span(use).line < source.span(loop).line]
        inside = [use for use in uses if loop in source.ancestors(use)]
        start = value_given(source, above[-1]) if above else None
        if start is not None and inside and all(found.statement in source.ancestors(use) for use in inside):
            return loop, start
    return None


@dataclass(frozen=True)
class _Read:
    """A single number that a line reads in each step, by `x.item()` or `float(x)`."""

    found: SourceNode
    dtype: str
    detached: str
    """Code of the tensor without its graph."""
    kept: str
    """Code of a tensor that stays as it is now: a copy, if its memory is written to or is the same each time."""

    @classmethod
    def of(cls, habit: Habit) -> _Read | None:
        queries, found, ops = habit.queries, habit.found, habit.ops
        if found is None or habit.code is None:
            return None
        item = match_code("$x.item()", found.node)
        read = item or match_code("float($x)", found.node)
        rows = [queries.inputs(op)[0] for op in ops if queries.inputs(op)]
        dtypes = {str(queries.trace.tensors.raw("dtype", row)) for row in rows}
        devices = {queries.device(row) for row in rows}
        is_plain = len(dtypes) == len(devices) == 1 and not any(queries.dims[row] for row in rows)
        if read is None or not is_plain or len(rows) != len(ops) or devices.pop().startswith("mps"):
            return None
        dtype = dtypes.pop()
        if item is None and dtype not in _FLOATS:
            return None
        bases = [queries.base(row) for row in rows]
        is_kept_alone = len(set(bases)) == len(bases) and not are_written(queries, bases, ops[0])
        inner = match_code("$x.detach()", read["x"]) or read
        detached = found.code.called_on(inner["x"], "detach()")
        return cls(found, dtype, detached, detached if is_kept_alone else f"{detached}.clone()")


def read_after_loop(habit: Habit) -> Fix | None:
    """Keep or add up on the device what a line reads in each step, where that gives the very same values."""
    read = _Read.of(habit)
    return (_kept(read) or _added_up(read)) if read is not None else None


def _kept(read: _Read) -> Fix | None:
    """Turn `history.append(loss.item())` into a list of tensors, which the line below the loop makes one of numbers."""
    found, code = read.found, read.found.code
    append = match_code("$list.append($value)", found.source.parent(found.node))
    name = variable(append["list"]) if append is not None and append["value"] is found.node else ""
    filled = _filled(found, name) if name and alone(found.statement) is not None else None
    loop, start = filled or (None, None)
    if loop is None or start is None or code.text(start) not in ("[]", "list()") or not _has_torch(found):
        return None
    outer = [each for each in loops_around(found) if each is not loop and each in found.source.ancestors(loop)]
    if not all(each in found.source.ancestors(start) for each in outer):
        return None  # the next round would append tensors to numbers
    below = f"{name} = torch.stack({name}).tolist()"
    edits = code.replaced(found.node, read.kept), code.below(loop, below)
    return next(suggested(sentence("fixed.append", kept=read.kept, code=below), *edits), None)


def _has_torch(found: SourceNode) -> bool:
    """Return whether code imports torch by its name, or uses that: what a cell uses, another has imported."""
    tree = found.source.tree
    names = {alias.asname or alias.name for node in nodes_of(ast.Import, tree) for alias in node.names}
    return "torch" in names | names_in(tree) - set(assigned_names(tree))


def _added_up(read: _Read) -> Fix | None:
    """Turn `total += loss.item() * n` into a sum on the device, in the precision of Python's numbers."""
    found, code = read.found, read.found.code
    summed = updated(found.statement)
    name = variable(summed[0]) if summed is not None and isinstance(summed[1], ast.Add) else ""
    filled = _filled(found, name) if name else None
    loop, given = filled or (None, None)
    if summed is None or loop is None or type(start := getattr(given, "value", None)) not in (int, float):
        return None
    number = "float" if read.dtype in _FLOATS else "int"
    if number == "int" and not (type(start) is int and summed[2] is found.node):
        return None  # `int` below the loop would cut off a fraction
    new = f"{read.detached}.double()" if number == "float" else read.detached
    below = f"{name} = {number}({name})"
    edits = code.replaced(found.node, new), code.below(loop, below)
    return next(suggested(sentence("fixed.add-up", kept=new, code=below), *edits), None)
