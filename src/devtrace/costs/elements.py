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
"""At least so many elements are read of each tensor that a line indexes; of what its loop goes through, one."""
_STEPS_BACK: Final = 4
_GIVES_ELEMENTS: Final = VIEWS | PICKS | COPIES
_SAMPLE: Final = 2_000


def are_read_singly(cost: Cost) -> Names | None:
    """Find a line that reads very many elements of few tensors, or some in each step; nothing writes meanwhile."""
    queries, ops = cost.queries, cost.ops[:_SAMPLE]
    is_users_in_each_step = cost.pace.is_of_each_step and not queries.package(cost.line)
    if len(ops) < OFTEN or (cost.count < MANY and not is_users_in_each_step):
        return None
    owners = [_owners_of_element(queries, op) for op in ops]
    bases = set[TensorId]().union(*owners)
    methods, fewest = next(_ways_to_read_all(cost.place, is_index=not is_truth_asked(cost)), ({}, 0))
    if not methods or sum(map(bool, owners)) * 2 < len(ops) or sum(map(len, owners)) < fewest * len(bases):
        return None
    if are_written(queries, bases, min(ops), max(ops)):
        return None
    shown = list(methods.items())[: max(len(set[TensorId]().union(*owners[:_OF_EACH])), 1)]
    return {
        "names": [f"`{name}`" for name, _ in shown],
        "code": [f"`{name}.{method}()`" for name, method in shown],
        "culprit": as_culprit(queries, min(bases), [shown[0][0]], queries.site(queries.born(min(bases)))),
    }


def _owners_of_element(queries: TraceQueries, op: OpId) -> set[TensorId]:
    """Return `x` and `y` for an op that reads `x[0]`, or `x[0] + y[1]` that was computed from elements."""
    owners, numbers = set[TensorId](), queries.inputs(op)[:1]
    for _ in range(_STEPS_BACK):
        numbers = [number for number in numbers if queries.dims[number] == 0]
        bases = {number: queries.base(number) for number in numbers}
        owners |= {base for number, base in bases.items() if base != number and queries.dims[base] > 0}
        numbers = [part for number in numbers if bases[number] not in owners for part in queries.made_from(number)]
    return owners


def _ways_to_read_all(place: SourceNode, *, is_index: bool) -> Iterator[tuple[dict[str, str], int]]:
    """Yield `{"tokens": "tolist"}, 1` for `token.item()` in a loop over `tokens`, then the same for `tokens[i].item()`.

    The method reads all elements at once. The number says how many of each tensor a line must have read.
    """
    source = place.source
    loops = ((name, next(gone_through(source, place.node, name), None)) for name in names_in(place.node))
    tensors = {name: whole[0] for name, whole in loops if whole is not None}
    if tensors and all(is_path(tensor) or called_name(tensor) in _GIVES_ELEMENTS for tensor in tensors.values()):
        attributes = [node.attr for node in nodes_of(ast.Attribute, place.node) if variable(node.value) in tensors]
        method = "tolist" if READS.issuperset(attributes) else "cpu"  # `label.long()` asks for what only a tensor has
        yield {source.segment(tensor): method for tensor in sorted(tensors.values(), key=source.span)}, 1
    parts = [part for part in nodes_of(ast.Subscript, place.node) if is_path(part.value)]
    inner = [part for part in parts if part is not place.node]
    # Of `counts[i]` itself the index is read, but where it is asked for its truth.
    if items := inner if inner or is_index else parts:
        methods = {source.segment(item.value): "cpu" if len(listed(item.slice)) > 1 else "tolist" for item in items}
        yield methods, _OF_EACH


# Masks. What to do is for what takes the values.


def are_picked(cost: Cost) -> Names | None:
    """Find `x[mask]`, which counts what a mask picks, and what takes it: a loss that ignores labels, a mean."""
    queries, first = cost.queries, cost.ops[0]
    if "_local_scalar_dense" in queries.op_name(first):
        return None  # it reads one value
    takers = {op_of(queries, taker) for taker in islice(takers_after(queries, first, lambda _: True), MOST)}
    return {"is_of_labels": not takers.isdisjoint(IGNORES_LABELS), "is_averaged": not takers.isdisjoint(AVERAGES)}
