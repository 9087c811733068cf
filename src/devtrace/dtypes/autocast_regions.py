"""Regions of `torch.autocast`, as they were recorded: which one an op ran in, and where that was left."""

import ast

import numpy as np

from devtrace.diagnosis.evidence.origins import Origin
from devtrace.diagnosis.evidence.trace_queries import NOWHERE, TraceQueries
from devtrace.diagnosis.findings import Site
from devtrace.source.element_types import DEFAULT, GIVES_DTYPES, is_cast, is_floating
from devtrace.source.matching import called_name, called_names, calls_in, keyword, match_code
from devtrace.source.parsing import Source
from devtrace.trace.ids import NO_OP, OpId
from devtrace.trace.rows import Autocast


def region_of(queries: TraceQueries, op: OpId) -> Autocast | None:
    """Return the innermost region for its kind of device that an op ran in."""
    row = int(queries.autocasts[op]) if op >= 0 else -1
    return queries.trace.autocasts[row] if row >= 0 else None


def ran_within_before(queries: TraceQueries, op: OpId) -> Autocast | None:
    """Return the region in which the line of an op ran before, as in training, if the op itself is outside of all."""
    rows = queries.autocasts[:op][queries.trace.ops.ints("site")[:op] == queries.op_site(op)]
    regions = [queries.trace.autocasts[row] for row in np.unique(rows[rows >= 0]).tolist()]
    return next((each for each in regions[::-1] if each.enabled > 0), None) if region_of(queries, op) is None else None


def has_cast(queries: TraceQueries, origin: Origin, dtype: str, *, inside: bool = False) -> bool:
    """Return whether autocast computed a tensor by its list, or cast it unasked for an op outside the region."""
    was_cast = not inside and origin.arrival == "copied" and _is_cast_by_autocast(queries, origin.op)
    return was_cast or by_list(queries, origin, dtype) >= 0


def is_written_within(queries: TraceQueries, op: OpId) -> bool:
    """Return whether the source has an op in a block that enters autocast, for a region that nobody recorded."""
    found = queries.op_node(op)
    return is_entered_around(found.source, found.node)


def is_entered_around(source: Source, node: ast.AST) -> bool:
    return any(map(_enters_autocast, source.ancestors(node)))


def by_list(queries: TraceQueries, origin: Origin, dtype: str) -> OpId:
    """Return the op on a tensor's way that autocast computed in float32, as its list says; -1 for none.

    Autocast cast an input of that op to float32, or the op gave float32 for inputs in half precision.
    """
    ops = (queries.producer(row) for row in origin.path if dtype == DEFAULT)
    return next((op for op in ops if _was_computed_by_list(queries, op)), NO_OP)


def _was_computed_by_list(queries: TraceQueries, op: OpId) -> bool:
    region = region_of(queries, op)
    if region is None or region.dtype == DEFAULT or not _is_unasked(queries, op, region) or queries.kind(op) == "copy":
        return False
    inputs = [row for row in queries.inputs(op) if is_floating(queries.trait(row))]
    dtypes = {queries.trait(row) for row in inputs}
    return dtypes == {region.dtype} or any(_is_cast_by_autocast(queries, queries.producer(row)) for row in inputs)


def _is_cast_by_autocast(queries: TraceQueries, op: OpId) -> bool:
    region = region_of(queries, op)
    return region is not None and queries.op_name(op) == "aten._to_copy" and _is_unasked(queries, op, region)


def _is_unasked(queries: TraceQueries, op: OpId, region: Autocast) -> bool:
    """Return whether an op ran under autocast, in a line that asks for no dtype itself."""
    found = queries.op_node(op)
    if found is NOWHERE or region.enabled <= 0:
        return False
    names_a_dtype = any(keyword(call, "dtype") is not None for call in calls_in(found.statement))
    names = called_names(found.statement)
    return not names_a_dtype and not any(is_cast(name) or any(word in name for word in GIVES_DTYPES) for name in names)


def is_of_whole_numbers(queries: TraceQueries, op: OpId) -> bool:
    inputs = queries.inputs(op)
    return bool(inputs) and not any(is_floating(queries.trait(row)) for row in inputs)


def _enters_autocast(block: ast.AST) -> bool:
    """Return whether `with torch.autocast(...):` begins a block, or `@torch.autocast(...)` decorates a function."""
    heads = [*(item.context_expr for item in getattr(block, "items", ())), *getattr(block, "decorator_list", ())]
    calls = (head for head in heads if "autocast" in called_name(head))
    return any(match_code("False", keyword(call, "enabled")) is None for call in calls)


def exit_line(queries: TraceQueries, region: Autocast) -> Site | None:
    """Return where a region was left: the last line of its block, where Python itself names the line of the `with`."""
    site = Site.of(region.left) if region.left is not None else None
    entry = queries.source_node(region.site.id) if region.site is not None else NOWHERE
    block = entry.statement
    if site is None or not isinstance(block, ast.With) or not _enters_autocast(block):
        return site
    return entry.code.site_of(block.body[-1])
