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
"""This many similar tensors of numbers in a row could be one tensor."""
_TINY: Final = 256
BETWEEN: Final = 6
"""With at most this many ops from each copy to the next, copies are one run."""


def _severity_of_few_bytes(cost: Cost) -> Severity | None:
    """Return "warning" for a line that copies a few bytes in each step of a long loop; None for most other lines.

    In a short loop it is a "note", if the line is the user's own.
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


def are_a_few_bytes(cost: Cost) -> Names | None:
    """Find long runs of copies of a few bytes each, most of tensors that were made just before their own copy.

    The tensors of a model, of its checkpoint or of an optimizer are there before the first of them is copied.
    """
    shortest_run, fewest = (FEW, FEW * OFTEN) if _are_lists_of_numbers(cost) else (OFTEN, MANY)
    if cost.count < fewest or not cost.is_small or len(cost.ops) < 2:
        return None
    is_gap = np.diff(cost.ops) > BETWEEN
    lengths = np.diff(np.concatenate(([0], np.flatnonzero(is_gap) + 1, [len(cost.ops)])))  # of the runs
    are_in_long_runs = 2 * int(lengths[lengths >= shortest_run].sum()) > len(cost.ops)
    return {"name": cost.name} if are_in_long_runs and _are_made_one_by_one(cost) else None


def _are_lists_of_numbers(cost: Cost) -> bool:
    """Return whether `torch.tensor(state).to(device)` makes tensors of a few numbers, of one shape and dtype."""
    queries, table = cost.queries, cost.queries.trace.tensors
    tensors = [tensor for op in cost.ops for tensor in (queries.carried(op) or queries.outputs(op))[:1]]
    kinds = {(table.number("shape", tensor), str(table.raw("dtype", tensor))) for tensor in tensors}
    makes = len(kinds) == 1 and "tensor" in called_names(queries.op_node(queries.producer(tensors[0])).node)
    return makes and cost.is_of_the_user and cost.bytes <= _TINY * len(cost.ops)


def _are_made_one_by_one(cost: Cost) -> bool:
    """Return whether most of the copied tensors were made after the copy before their own.

    `set_` makes none: torch.save reads a storage by it. What torch makes of a list it makes and copies in one op.
    """
    queries, copies = cost.queries, sorted(cost.ops)
    makers = [max(map(queries.producer, queries.carried(copy)), default=copy) for copy in copies[1:]]
    pairs = zip(copies[:-1], makers, strict=True)
    return 2 * sum(maker > copy and "set_" not in queries.op_name(maker) for copy, maker in pairs) > len(makers)


# To a device.


def is_a_number(cost: Cost) -> Names | None:
    """Find single numbers of the host's that are made into tensors and copied in each step."""
    queries, severity, node = cost.queries, _severity_of_few_bytes(cost), cost.node
    per_op = [(queries.carried(op) or queries.outputs(op))[:1] for op in cost.ops]
    tensors = [tensor for firsts in per_op for tensor in firsts] if severity is not None else []
    if not tensors or len(tensors) < len(per_op) or (any(queries.dims[tensors]) and not _is_one_element(cost, tensors)):
        return None
    # Torch needs the one in `Normal(x, 0.1)`. A package makes one where it is used, or moves one that it keeps.
    makes_or_moves = not isinstance(node, ast.Call) or _makes_or_fills(node) or is_move(called_name(node))
    moves_what_it_makes = cost.moved is not None and any(map(_makes_or_fills, calls_in(cost.moved)))
    is_needed = isinstance(node, ast.Call) and bool(queries.package(cost.line)) and not moves_what_it_makes
    return {"name": cost.part, "severity": severity} if makes_or_moves and not is_needed else None


def _makes_or_fills(call: ast.AST) -> bool:
    """Return whether a call gives a tensor of its own, `torch.ones(2)`, or fills one, `x.fill_(1)`."""
    name = called_name(call)
    makes = is_factory(name) or name in JOINS or name.endswith("Tensor")
    return makes or name in FILLS or name in ("copy_", "type_as")


def _is_one_element(cost: Cost, tensors: list[TensorId]) -> bool:
    """Return whether the line makes a tensor of one element: `torch.tensor([0.5]).to(device)`.

    `torch.tensor([x])` may be all the data of a step, unless the step makes other copies too.
    """
    calls = [call for call in calls_in(cost.node) if called_name(call).lower().endswith("tensor") and call.args]
    items = [item for call in calls if (item := _only_item(call.args[0])) is not None]
    counts = {site: int(cost.tally["h2d"][site]) for site in cost.tally.sites("h2d")}
    count_of_line = counts.pop(cost.site, 0)
    is_beside_others = max(counts.values(), default=0) * 2 >= cost.count or count_of_line > cost.count
    has_one_element = all(size == 1 for tensor in tensors for size in cost.queries.trace.tensors[tensor].shape)
    return has_one_element and bool(items) and (is_beside_others or not names_in(*items))


def _only_item(code: ast.expr) -> ast.expr | None:
    """Return `x` of `[[x]]`; None if it is no list of one value."""
    value = code
    while isinstance(value, ast.List | ast.Tuple) and len(value.elts) == 1:
        value = value.elts[0]
    return value if value is not code and not isinstance(value, ast.List | ast.Tuple | ast.Starred) else None


def is_left_to_ddp(cost: Cost) -> Names | None:
    """Find inputs that only DistributedDataParallel moves, while the same function moves others of the step by hand."""
    queries, site = cost.queries, cost.queries.site(cost.site)
    if cost.count < AGAIN or not cost.ops or not all(is_of_ddp(queries, op) for op in cost.ops[:SAMPLE]):
        return None
    others = [other for other in cost.tally.sites("h2d") if other != cost.site]
    stepwise = [queries.site(other) for other in others if cost.count % int(cost.tally["h2d"][other]) == 0]
    line = next((other for other in reversed(stepwise) if other and site and other.function == site.function), None)
    return {"site": line} if line is not None else None


# To the host.


def are_values(cost: Cost) -> Names | None:
    """Find values of a training's own work (a loss, a norm, a score) that the host takes in each step."""
    queries, severity, ops = cost.queries, _severity_of_few_bytes(cost), cost.ops[:SAMPLE]
    if severity is None or cost.trains_alone:
        return None
    reads_no_choice = is_of_the_line(cost) and not is_often(is_a_choice, cost)
    if not reads_no_choice or are_taken_one_by_one(cost.place):
        return None
    are_numbers = cost.pace.trains and not any(queries.dims[tensor] for op in ops for tensor in queries.carried(op))
    is_of_training = are_numbers or sum(is_trained(queries, op) for op in ops) * 2 >= len(ops)
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
    bases = [queries.base(tensor) for tensor in cost.carried[:SAMPLE]]
    makers = list(dict.fromkeys(map(queries.producer, bases)))
    if len(makers) < AGAIN or NO_OP in makers:
        return None
    were_sent = all(queries.kind(op) == "copy" and HOST in queries.devices_of(*queries.carried(op)) for op in makers)
    takers = {op for base in bases for op in queries.takers(base)}
    if not were_sent or not takers <= {*cost.ops}:
        return None
    line = queries.op_user(makers[0])
    move = match_code("$x = $x.$move(...)", queries.source_node(line).statement)
    is_a_move = move is not None and variable(move["x"]) != ""
    return {"name": cost.name, "site": queries.site(line)} if is_a_move or is_of_ddp(queries, makers[0]) else None


# Copies that have only begun.


def is_used_too_soon(cost: Cost) -> Names | None:
    """Find a `non_blocking` copy whose data the host works on before anything has waited for it."""
    queries, inputs = cost.queries, cost.queries.trace.ops.lists("inputs")
    is_host_work = (queries.trace.ops.ints("device") == queries.host) & ~queries.is_kind("view")
    ops, non_blocking = (queries.trace.copies.ints(column) for column in ("op", "non_blocking"))
    # What blocks, and what waits for the device, has waited for all copies before.
    waits = np.sort(np.concatenate([np.flatnonzero(queries.is_kind("sync")), ops[non_blocking <= 0]]))
    for copy in map(OpId, ops[cost.rows[non_blocking[cost.rows] > 0]][:SAMPLE].tolist()):
        takers = inputs.rows[np.isin(queries.bases[inputs.flat], queries.outputs(copy))]
        first_use = next((OpId(op) for op in takers[is_host_work[takers]].tolist() if op > copy), copy)
        if first_use > copy and np.searchsorted(waits, first_use) == np.searchsorted(waits, copy, "right"):
            return {"name": cost.name, "site": queries.site(queries.op_user(first_use))}
    return None


def asks_in_vain(cost: Cost) -> bool:
    """Return whether a line asks for `non_blocking=True` of memory that is not pinned."""
    copies = cost.queries.trace.copies
    return bool(((copies.ints("non_blocking") > 0) & (copies.ints("pinned") <= 0))[cost.rows].any())
