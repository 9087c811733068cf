"""Copies of one line, by what they carry: a few bytes each, single numbers, weights, what was sent in vain.

And copies that `non_blocking=True` only begins: nobody may read their data before they are done.

scores = y.to("cpu", non_blocking=True)
print(scores.mean())                            # bad: nothing has waited for the copy, old values may be read
"""

import ast
from typing import Final

import numpy as np

from devtrace.costs.reads import is_a_choice, is_of_the_line, is_often
from devtrace.costs.repeated_costs import AGAIN, MANY, OFTEN, SAMPLE, STEPS, Cost, Names
from devtrace.costs.uses import are_taken_one_by_one
from devtrace.costs.values import is_trained
from devtrace.diagnosis.evidence.trace_queries import HOST, TraceQueries
from devtrace.diagnosis.slugs import Severity
from devtrace.source.matching import called_name, called_names, calls_in, match_code, names_in, variable
from devtrace.source.vocabulary import FILLS, JOINS, is_factory, is_move
from devtrace.trace.ids import NO_OP, OpId, TensorId

FEW: Final = 3
"""So many tensors of numbers, alike, in a row could be one."""
_TINY: Final = 256
BETWEEN: Final = 6
"""So many ops from one copy to the next are next to nothing."""


def _weight(cost: Cost) -> Severity | None:
    """Return how much a few bytes weigh that a line copies in each step of a loop; None if it does not.

    Those of a short loop are a note, at a line of the user's.
    """
    if not cost.is_small or not cost.is_of_each_step:
        return None
    if cost.count >= OFTEN and cost.pace.steps >= STEPS:
        return "warning"
    return "note" if cost.is_of_the_user else None


def is_of_ddp(queries: TraceQueries, op: OpId) -> bool:
    """Return whether DistributedDataParallel itself ran an op."""
    call = queries.trace.ops[op].call
    return call is not None and str(call.module.type) == "DistributedDataParallel"


# Elements.


def are_a_few_bytes(cost: Cost) -> Names | None:
    """Find very many, very small copies, each of what was just picked or made, with next to nothing between them.

    The tensors of a model, of its checkpoint or of an optimizer are there before the first of them is copied.
    """
    fewest, least = (FEW, FEW * OFTEN) if _are_lists_of_numbers(cost) else (OFTEN, MANY)
    if cost.count < least or not cost.is_small or len(cost.ops) < 2:
        return None
    gaps = np.diff(cost.ops) > BETWEEN
    rows = np.diff(np.concatenate(([0], np.flatnonzero(gaps) + 1, [len(cost.ops)])))
    are_in_long_rows = 2 * int(rows[rows >= fewest].sum()) > len(cost.ops)
    return {"name": cost.name} if are_in_long_rows and _are_made_one_by_one(cost) else None


def _are_lists_of_numbers(cost: Cost) -> bool:
    """Return whether a line makes tensors of a few of Python's numbers, all alike: `torch.tensor(state).to(device)`."""
    queries, tensors = cost.queries, cost.queries.trace.tensors
    rows = [row for op in cost.ops for row in (queries.carried(op) or queries.outputs(op))[:1]]
    kinds = {(tensors.number("shape", row), str(tensors.raw("dtype", row))) for row in rows}
    makes = len(kinds) == 1 and "tensor" in called_names(queries.op_node(queries.producer(rows[0])).node)
    return makes and cost.is_of_the_user and cost.bytes <= _TINY * len(cost.ops)


def _are_made_one_by_one(cost: Cost) -> bool:
    """Return whether what is copied was made after the copy before it.

    `set_` makes none: torch.save reads a storage by it. What torch makes of a list it makes and copies in one op.
    """
    queries, ops = cost.queries, sorted(cost.ops)
    made = [max(map(queries.producer, queries.carried(op)), default=op) for op in ops[1:]]
    fresh = [op > last and "set_" not in queries.op_name(op) for last, op in zip(ops[:-1], made, strict=True)]
    return 2 * sum(fresh) > len(made)


# To a device.


def is_a_number(cost: Cost) -> Names | None:
    """Find single numbers of the host's that are made into tensors and copied in each step."""
    queries, severity, node = cost.queries, _weight(cost), cost.node
    taken = [(queries.carried(op) or queries.outputs(op))[:1] for op in cost.ops]
    rows = [row for each in taken for row in each] if severity is not None else []
    if not rows or len(rows) < len(taken) or (any(queries.dims[rows]) and not _is_one_element(cost, rows)):
        return None
    # Torch needs the one in `Normal(x, 0.1)`. A package makes one where it is used, or moves one that it keeps.
    is_there = not isinstance(node, ast.Call) or _makes(node) or is_move(called_name(node))
    is_both = cost.moved is not None and any(map(_makes, calls_in(cost.moved)))
    is_needed = isinstance(node, ast.Call) and bool(queries.package(cost.line)) and not is_both
    return {"name": cost.part, "severity": severity} if is_there and not is_needed else None


def _makes(call: ast.AST) -> bool:
    """Return whether a function gives a tensor of its own, or fills one."""
    name = called_name(call)
    made = is_factory(name) or name in JOINS or name.endswith("Tensor")
    return made or name in FILLS or name in ("copy_", "type_as")


def _is_one_element(cost: Cost, rows: list[TensorId]) -> bool:
    """Return whether the line makes a tensor of one element: `torch.tensor([0.5]).to(device)`.

    One that is not in the source may be all the data of a step; beside another of the step's copies it need not be.
    """
    made = [call.args[0] for call in calls_in(cost.node) if called_name(call).lower().endswith("tensor") and call.args]
    values = [leaf for leaf in map(_only_item, made) if leaf is not None]
    counts = {site: int(cost.tally["h2d"][site]) for site in cost.tally.sites("h2d")}
    own = counts.pop(cost.site, 0)
    is_beside = max(counts.values(), default=0) * 2 >= cost.count or own > cost.count
    is_one = all(size == 1 for row in rows for size in cost.queries.trace.tensors[row].shape)
    return is_one and bool(values) and (is_beside or not names_in(*values))


def _only_item(code: ast.expr) -> ast.expr | None:
    """Return `x` of `[[x]]`; None if it is no list of one value."""
    value = code
    while isinstance(value, ast.List | ast.Tuple) and len(value.elts) == 1:
        value = value.elts[0]
    return value if value is not code and not isinstance(value, ast.List | ast.Tuple | ast.Starred) else None


# To the host.


def are_values(cost: Cost) -> Names | None:
    """Find values of a training's own work (a loss, a norm, a score) that the host takes in each step."""
    queries, severity, some = cost.queries, _weight(cost), cost.ops[:SAMPLE]
    if severity is None or cost.trains_alone:
        return None
    is_asked = is_of_the_line(cost) and not is_often(is_a_choice, cost)
    if not is_asked or are_taken_one_by_one(cost.found):
        return None
    are_numbers = cost.pace.trains and not any(queries.dims[row] for op in some for row in queries.carried(op))
    is_of_training = are_numbers or sum(is_trained(queries, op) for op in some) * 2 >= len(some)
    return {"name": cost.name, "severity": severity} if is_of_training else None


def are_weights(cost: Cost) -> Names | None:
    """Find weights of a model that the host takes in each step: an average that it keeps, a snapshot."""
    bases = map(cost.queries.base, cost.carried)
    roles = {str(cost.queries.trace.tensors.raw("role", base)) for base in bases}
    is_in_training = cost.is_of_many_steps and cost.pace.trains and not cost.trains_alone
    return {"name": cost.name} if roles == {"parameter"} and is_in_training else None


def is_sent_in_vain(cost: Cost) -> Names | None:
    """Find data that a line sends to a device on its own, where nothing takes it but the line that fetches it back."""
    queries = cost.queries
    bases = [queries.base(row) for row in cost.carried[:SAMPLE]]
    sent = list(dict.fromkeys(map(queries.producer, bases)))
    if len(sent) < AGAIN or NO_OP in sent:
        return None
    are_copies = all(queries.kind(op) == "copy" and HOST in queries.devices_of(*queries.carried(op)) for op in sent)
    takers = {op for base in bases for op in queries.takers(base)}
    if not are_copies or not takers <= {*cost.ops}:
        return None
    line = queries.op_user(sent[0])
    moved = match_code("$x = $x.$move(...)", queries.source_node(line).statement)
    is_alone = moved is not None and variable(moved["x"]) != ""
    return {"name": cost.name, "site": queries.site(line)} if is_alone or is_of_ddp(queries, sent[0]) else None


# Copies that have only begun.


def is_used_too_soon(cost: Cost) -> Names | None:
    """Find a copy to the host that it works on before anything has waited."""
    queries, inputs = cost.queries, cost.queries.trace.ops.lists("inputs")
    works = (queries.trace.ops.ints("device") == queries.host) & ~queries.is_kind("view")
    ops, asked = (queries.trace.copies.ints(column) for column in ("op", "non_blocking"))
    # What blocks, and what waits for the device, has waited for all copies before.
    waits = np.sort(np.concatenate([np.flatnonzero(queries.is_kind("sync")), ops[asked <= 0]]))
    for op in map(OpId, ops[cost.rows[asked[cost.rows] > 0]][:SAMPLE].tolist()):
        takes = inputs.rows[np.isin(queries.bases[inputs.flat], queries.outputs(op))]
        first = next((OpId(each) for each in takes[works[takes]].tolist() if each > op), op)
        if first > op and np.searchsorted(waits, first) == np.searchsorted(waits, op, "right"):
            return {"name": cost.name, "site": queries.site(queries.op_user(first))}
    return None


def asks_in_vain(cost: Cost) -> bool:
    """Return whether a line asks for `non_blocking=True` of memory that is not pinned."""
    table = cost.queries.trace.copies
    return bool(((table.ints("non_blocking") > 0) & (table.ints("pinned") <= 0))[cost.rows].any())
