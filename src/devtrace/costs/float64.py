"""Float64 that nobody asked for and that enters what a float32 model computes: what follows takes twice the memory.

goals = torch.from_numpy(table)         # float64, as numpy made it
loss = mse(model(x), goals)             # and so the loss, and the gradients down to here
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from devtrace.costs.steps import FEWEST
from devtrace.diagnosis.evidence.finding_parts import as_culprit
from devtrace.diagnosis.evidence.moves import name_of
from devtrace.diagnosis.evidence.origins import Origin, find_origin, is_of_an_array
from devtrace.diagnosis.evidence.source_text import brief, name_by_its_line, statement_site
from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.diagnosis.findings import Finding
from devtrace.diagnosis.ledger import Tally, counted
from devtrace.source.element_types import DEFAULT
from devtrace.source.matching import owner_of
from devtrace.words.catalogue import sentence

_ANCESTORS: Final = 40


@dataclass
class _Entry:
    """A line at which float64 enters, and the ops there."""

    row: int
    other: int
    origin: Origin
    ops: list[int] = field(default_factory=list)


def float64_that_enters(queries: TraceQueries, tally: Tally) -> Iterator[Finding]:
    for site, entry in _entries(queries.of_dtypes).items():
        if len(entry.ops) >= FEWEST or queries.trace.ops.number("call", entry.ops[0]) >= 0:
            yield _finding(queries.of_dtypes, tally, site, entry)


def _entries(queries: TraceQueries) -> dict[int, _Entry]:
    """Return where float64 enters, by line of the user's; it does not enter again in what is computed from it."""
    found, inside = dict[int, _Entry | None](), set[int]()
    for op in _gives_float64(queries):
        inputs, site = queries.inputs(op), int(queries.op_users[op])
        is_inside, pair = not inside.isdisjoint(inputs), _mixed(queries, op)
        if not is_inside and pair is not None:
            if site not in found:
                found[site] = _entry(queries, *pair)
            if (entry := found[site]) is not None:
                entry.ops.append(op)
                is_inside = True
        inside.update(queries.outputs(op) if is_inside else ())
    return {site: entry for site, entry in found.items() if entry is not None}


def _gives_float64(queries: TraceQueries) -> list[int]:
    dtypes, outputs = queries.trace.tensors.ints("dtype"), queries.trace.ops.lists("outputs")
    wide, usual = (dtypes == queries.trait_id(dtype) for dtype in ("float64", DEFAULT))
    if not (wide.any() and usual.any()):
        return []
    return np.flatnonzero(outputs.have(wide[outputs.flat])).tolist()


def _mixed(queries: TraceQueries, op: int) -> tuple[int, int] | None:
    """Return the float64 and the float32 tensor that an op makes a new float64 tensor of; a sum in place is meant."""
    inputs = queries.inputs(op)
    kept = {queries.base(row) for row in inputs}
    wide, usual = (
        next((row for row in inputs if queries.trait(row) == dtype and queries.dims[row] > 0), -1)
        for dtype in ("float64", DEFAULT)
    )
    is_new = queries.kind(op) == "compute" and kept.isdisjoint(map(queries.base, queries.outputs(op)))
    return (wide, usual) if wide >= 0 and usual >= 0 and is_new else None


def _entry(queries: TraceQueries, row: int, other: int) -> _Entry | None:
    """Return the entry of float64 that came with an array, into what a model has or computed."""
    origin, calls = find_origin(queries, row), queries.trace.ops.ints("call")
    made_by = [(each, queries.producer(each)) for each in queries.ancestors(other, _ANCESTORS)]
    is_of_a_model = any(queries.is_of_a_module(each) or (op >= 0 and calls[op] >= 0) for each, op in made_by)
    found = queries.source_node(queries.born(origin.row)) if origin.arrival == "given" else None
    is_a_loaders = found is not None and isinstance(found.statement, ast.For)  # torch's own numbers are none
    is_unasked = is_of_an_array(queries, origin) or is_a_loaders
    return _Entry(row, other, origin) if is_of_a_model and is_unasked else None


def _finding(queries: TraceQueries, tally: Tally, site: int, entry: _Entry) -> Finding:
    op, first = entry.ops[0], entry.origin.row
    born, rows = queries.born(first), np.arange(len(queries.trace.ops))
    name, other = (_name(queries, op, row) for row in (entry.row, entry.other))
    made = queries.site(born)
    code = brief(made.text) if made is not None and is_of_an_array(queries, entry.origin) else ""
    help = sentence("dtype-cost.float64.help", code=code) if code else sentence("dtype-cost.float64.loaded", name=name)
    return Finding(
        rule="dtype-cost",
        severity="note",
        cause="numpy-boundary",
        site=queries.site(site),
        op=op,
        culprit=as_culprit(queries, entry.row, [name], statement_site(queries, born)),
        count=int(counted(queries, tally, np.isin(rows, entry.ops))[site]),
        message=sentence("dtype-cost.float64", name=name, other=other),
        help=help,
        ops=tuple(entry.ops),
    )


def _name(queries: TraceQueries, op: int, row: int) -> str:
    """Return what the program calls an input of an op: as it was recorded, in its line, or where it was made."""
    recorded, found, rows = name_of(queries, queries.base(row)), queries.op_node(op), queries.inputs(op)
    match found.node if found is not None else None:
        case ast.BinOp(left=left, right=right):
            given = [left, right]
        case ast.Call(args=args) as call:
            owner = owner_of(call)
            given = args if len(args) == len(rows) else [*([owner] if owner is not None else ()), *args]
        case _:
            given = []
    if not recorded and found is not None and len(given) == len(rows):
        recorded = brief(found.source.segment(given[rows.index(row)]))
    return recorded or name_by_its_line(queries, queries.born(row), row) or sentence("copy.it")
