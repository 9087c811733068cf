"""Elements of a device's tensor that a line reads one by one: all of them at once are one wait.

for token in tokens: words.append(vocabulary[token.item()])     # tokens.tolist() has them all

And masks that pick elements in each step: how many, only the device knows.

F.cross_entropy(out[seen], y[seen])                      # bad: `seen` is counted, and the CPU waits
F.cross_entropy(out, y.masked_fill(~seen, -100))         # good: the loss leaves out what has that label
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import islice
from typing import Final

from devtrace.costs.reads import is_truth_asked
from devtrace.costs.repeated_costs import MANY, OFTEN, Cost, Names
from devtrace.costs.values import MOST, are_written, op_of, takers_after
from devtrace.diagnosis.evidence.finding_parts import as_culprit
from devtrace.diagnosis.evidence.trace_queries import SourceNode, TraceQueries
from devtrace.source.defuse import gone_through
from devtrace.source.matching import called_name, is_path, listed, names_in, nodes_of, variable
from devtrace.source.vocabulary import AVERAGES, COPIES, IGNORES_LABELS, PICKS, READS, VIEWS
from devtrace.trace.ids import OpId, TensorId

_OF_EACH: Final = 3
"""So many elements of each tensor that a line reads by index; of what its loop goes through one may be enough."""
_STEPS_BACK: Final = 4
_GIVES_ELEMENTS: Final = VIEWS | PICKS | COPIES
_SAMPLE: Final = 2_000


def are_read_singly(cost: Cost) -> Names | None:
    """Find a line that reads very many elements of few tensors, or some in each step; nothing writes meanwhile."""
    queries, ops = cost.queries, cost.ops[:_SAMPLE]
    is_for_its_user = cost.pace.is_of_each_step and not queries.package(cost.line)
    if len(ops) < OFTEN or (cost.count < MANY and not is_for_its_user):
        return None
    owners = [_owners_of_element(queries, op) for op in ops]
    bases = set[TensorId]().union(*owners)
    names, least = next(_names(cost.found, is_index=not is_truth_asked(cost)), ({}, 0))
    if not names or sum(map(bool, owners)) * 2 < len(ops) or sum(map(len, owners)) < least * len(bases):
        return None
    if are_written(queries, bases, min(ops), max(ops)):
        return None
    read = list(names.items())[: max(len(set[TensorId]().union(*owners[:_OF_EACH])), 1)]
    return {
        "names": [f"`{name}`" for name, _ in read],
        "code": [f"`{name}.{way}()`" for name, way in read],
        "culprit": as_culprit(queries, min(bases), [read[0][0]], queries.site(queries.born(min(bases)))),
    }


def _owners_of_element(queries: TraceQueries, op: OpId) -> set[TensorId]:
    """Return the tensors of which an op reads an element each, or what was computed from such elements."""
    found, rows = set[TensorId](), queries.inputs(op)[:1]
    for _ in range(_STEPS_BACK):
        rows = [row for row in rows if queries.dims[row] == 0]
        bases = {row: queries.base(row) for row in rows}
        found |= {base for row, base in bases.items() if base != row and queries.dims[base] > 0}
        rows = [part for row in rows if bases[row] not in found for part in queries.made_from(row)]
    return found


def _names(found: SourceNode, *, is_index: bool) -> Iterator[tuple[dict[str, str], int]]:
    """Yield the code of tensors whose elements a line reads, how all are read at once, and how many at least are read.

    They are what loops go through, or what a line takes items of.
    """
    source = found.source
    through = ((name, next(gone_through(source, found.node, name), None)) for name in names_in(found.node))
    given = {name: whole[0] for name, whole in through if whole is not None}
    if given and all(is_path(each) or called_name(each) in _GIVES_ELEMENTS for each in given.values()):
        asked = [each.attr for each in nodes_of(ast.Attribute, found.node) if variable(each.value) in given]
        way = "tolist" if READS.issuperset(asked) else "cpu"  # `label.long()` asks for what only a tensor has
        yield {source.segment(tensor): way for tensor in sorted(given.values(), key=source.span)}, 1
    parts = [part for part in nodes_of(ast.Subscript, found.node) if is_path(part.value)]
    others = [part for part in parts if part is not found.node]
    # Of `counts[i]` itself the index is read, but where it is asked for its truth.
    if parts := others if others or is_index else parts:
        ways = {source.segment(each.value): "cpu" if len(listed(each.slice)) > 1 else "tolist" for each in parts}
        yield ways, _OF_EACH


# Masks. What to do is for what takes the values.


def are_picked(cost: Cost) -> Names | None:
    """Find a line that counts what a mask picks, `x[mask]`, and what takes it: a loss that ignores labels, a mean."""
    queries, first = cost.queries, cost.ops[0]
    if "_local_scalar_dense" in queries.op_name(first):
        return None
    taken = {op_of(queries, each) for each in islice(takers_after(queries, first, lambda _: True), MOST)}
    return {"is_of_labels": not taken.isdisjoint(IGNORES_LABELS), "is_averaged": not taken.isdisjoint(AVERAGES)}
