"""device-to-host-copy: data that a line copies from a device to the CPU.

Results are. Needless is what goes back to the device, what was only just sent there, and the values of each step.

    weights = score(x.cpu().numpy())                # bad: numpy computes, and the next line brings it back
    loss = (torch.from_numpy(weights).to(device) * y).mean()
    loss = (score(x) * y).mean()                    # good: torch computes on the device
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

import numpy as np

from devtrace.diagnosis.costs import reads
from devtrace.diagnosis.costs.copies import (
    AGAIN,
    find_copies,
    is_of_ddp,
    of_single_elements,
    source_text,
    weight_of_each_step,
)
from devtrace.diagnosis.costs.habits import Habit
from devtrace.diagnosis.costs.needless import Needless
from devtrace.diagnosis.costs.same_tensor import of_one_tensor
from devtrace.diagnosis.evidence.trace_queries import HOST, SourceNode, TraceQueries
from devtrace.diagnosis.rules.rule import CostRule
from devtrace.source.matching import assigned_names, called_name, calls_in, match_code, names_in
from devtrace.source.vocabulary import MAKES
from devtrace.words.catalogue import sentence

_SAMPLE: Final = 20
"""Copies of a line that are looked at."""
_ARRAYS: Final = ("np", "numpy", "torch", "th")


def _values(habit: Habit) -> Needless | None:
    """Find values of a training's own work (a loss, a norm, a score) that the host takes in each step."""
    queries, found = habit.queries, habit.found
    severity = weight_of_each_step(habit)
    if found is None or severity is None or habit.trains_alone:
        return None
    some = habit.ops[:_SAMPLE]
    if not reads.is_of_the_line(queries, found, some[0]) or reads.is_a_choice(queries, some[0]):
        return None
    if sum(reads.is_trained(queries, op) for op in some) * 2 < len(some):
        return None
    why = sentence("copy.in-each-step", name=source_text(habit))
    return Needless(habit, why, sentence("copy.in-each-step.help"), severity=severity)


# What goes back.


def _round_trip(habit: Habit) -> Needless | None:
    """Find data that leaves a device, is worked on by the host and comes back before the line runs in the next step."""
    queries, ops, found = habit.queries, habit.ops, habit.found
    if len(ops) < AGAIN or queries.trace.ops.raw("phase", ops[-1]) == "backward":
        return None  # the gradient of work that began on the host
    if found is not None and called_name(found.node) not in MAKES and reads.is_within_torch(queries, found, ops[0]):
        return None
    of_a_step = max(round(habit.count / habit.pace.steps), 1) if habit.pace.is_of_each_step else 1
    ends = [*ops[of_a_step:], *[len(queries.trace.ops)] * of_a_step]
    for key, find_return in _RETURNS:
        sites = [find_return(queries, op, end) for op, end in zip(ops[:_SAMPLE], ends, strict=False)]
        returned = [site for site in sites if site is not None]
        if returned and len(returned) * 2 >= len(sites):
            why = sentence(key, name=source_text(habit), site=queries.site(returned[0]))
            return Needless(habit, why, sentence("copy.back.help"))
    return None


def _return_of_its_result(queries: TraceQueries, op: int, end: int) -> int | None:
    """Return the site where something made of a copied tensor is copied back to a device."""
    reached = set(queries.outputs(op))
    computed: set[int] = set()
    on_host = queries.trace.ops.ints("device")[op + 1 : end] == queries.host
    for later in (op + 1 + np.flatnonzero(on_host | queries.is_kind("copy")[op + 1 : end])).tolist():
        taken = queries.inputs(later)
        if reached.isdisjoint(taken):
            continue
        if on_host[later - op - 1]:
            reached.update(queries.outputs(later))
            if queries.kind(later) == "compute" or not computed.isdisjoint(taken):
                computed.update(queries.outputs(later))
        elif queries.trace.ops.raw("phase", later) != "backward" and not computed.isdisjoint(taken):
            return int(queries.op_users[later])
    return None


def _copies_to_device(queries: TraceQueries, op: int, end: int) -> Iterator[int]:
    on_device = queries.trace.ops.ints("device")[op + 1 : end] != queries.host
    yield from (op + 1 + np.flatnonzero(on_device & queries.is_kind("copy")[op + 1 : end])).tolist()


def _return_of_its_gradient(queries: TraceQueries, op: int, end: int) -> int | None:
    """Return the site where a copy's gradient is copied back: a trained loss or layer that computes on the host."""
    shapes = queries.trace.tensors.ints("shape")
    for later in _copies_to_device(queries, op, end):
        if queries.trace.ops.raw("phase", later) == "backward":
            pair = [*queries.inputs(op)[:1], *queries.outputs(later)[:1]]
            if len(pair) == 2 and shapes[pair[0]] == shapes[pair[1]]:
                return int(queries.cost_users[later])
    return None


def _return_from_numpy(queries: TraceQueries, op: int, end: int) -> int | None:
    """Return the site where a copy to a device takes what numpy alone made of the copy."""
    copied = queries.source_node(int(queries.op_users[op]))
    for later in _copies_to_device(queries, op, end) if copied is not None else ():
        outer = queries.source_node(int(queries.op_users[later]))
        is_newer = queries.inputs(later) and queries.producer(queries.inputs(later)[0]) > op
        if is_newer and copied is not None and outer is not None and _is_made_by_numpy(copied, outer):
            return int(queries.op_users[later])
    return None


def _is_made_by_numpy(copied: SourceNode, outer: SourceNode) -> bool:
    return _only_numpy_between(copied, outer.node) or _carried_by_numpy(copied, outer)


def _carried_by_numpy(copied: SourceNode, outer: SourceNode) -> bool:
    """Return whether lines of one function lead from the copy to the copy back: `a = x.cpu().numpy()`, then of `a`."""
    first, last, source = copied.statement, outer.statement, copied.source
    function = source.function(first)
    if outer.source is not source or source.function(last) is not function or source.parent(first) is None:
        return False
    if not isinstance(first, ast.Assign) or not _only_numpy_between(copied, first.value):
        return False
    carried = set(assigned_names(first))
    span = source.span
    between = [each for each in ast.walk(function or source.tree) if isinstance(each, ast.Assign)]
    between = [each for each in between if span(first).end_line < span(each).line < span(last).line]
    for each in sorted(between, key=lambda statement: span(statement).line):
        if carried & names_in(each.value):
            if not all(_root(call.func) in {*_ARRAYS, *carried} for call in calls_in(each.value)):
                return False
            carried.update(assigned_names(each))
    return _is_of_arrays(outer.node, carried)


def _is_of_arrays(moved: ast.AST, arrays: set[str]) -> bool:
    """Return whether a copy is of `torch.from_numpy(a)`, for the result of numpy and no other call."""
    made = match_code("$made.to(...)", moved) or match_code("$made.cuda(...)", moved) or {"made": moved}
    calls = list(calls_in(made["made"]))
    roots = [_root(call.func) for call in calls]
    return bool(arrays & names_in(made["made"])) and all(root in {*_ARRAYS, *arrays} for root in roots)


def _only_numpy_between(inner: SourceNode, outer: ast.AST) -> bool:
    """Return whether only calls of numpy and torch are between an expression and one around it."""
    for node in list(inner.source.ancestors(inner.node))[1:]:
        takes_it = isinstance(node, ast.Call) and any(part is inner.node for arg in node.args for part in ast.walk(arg))
        if takes_it and not (isinstance(node.func, ast.Attribute) and _root(node.func) in _ARRAYS):  # type: ignore[attr-defined]
            return False
        if node is outer or not isinstance(node, ast.expr):
            return node is outer
    return False


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


_RETURNS: Final = (
    ("copy.back-computed", _return_of_its_result),
    ("copy.back-numpy", _return_from_numpy),
    ("copy.back-gradient", _return_of_its_gradient),
)

# What was sent in vain.


def _unused(habit: Habit) -> Needless | None:
    """Find data that was sent to a device on its own and is fetched back as it was sent."""
    queries = habit.queries
    if len(habit.ops) < AGAIN:
        return None
    before = [-1, *habit.ops]
    sent = [_copy_in_vain(queries, op, since) for op, since in zip(habit.ops[:_SAMPLE], before, strict=False)]
    if sent[0] is None or any(op is None for op in sent):
        return None
    site = int(queries.op_users[sent[0]])
    if not _moves_one_tensor(queries.source_node(site)) and not is_of_ddp(queries, sent[0]):
        return None
    why = sentence("copy.unused", name=source_text(habit), site=queries.site(site))
    return Needless(habit, why, sentence("copy.unused.help"))


def _moves_one_tensor(found: SourceNode | None) -> bool:
    """Return whether somebody chose this tensor, `tags = tags.to(device)`; no line that moves a whole batch."""
    moved = match_code("$x = $x.$move(...)", found.statement) if found is not None else None
    return moved is not None and isinstance(moved["x"], ast.Name)


def _copy_in_vain(queries: TraceQueries, op: int, since: int) -> int | None:
    """Return the copy that sent to the device what an op fetches back, if no other op between took it."""
    row = next(iter(queries.inputs(op)), -1)
    sent = queries.producer(queries.base(row)) if row >= 0 else -1
    if sent <= since or queries.kind(sent) != "copy" or queries.device(queries.inputs(sent)[0]) != HOST:
        return None
    inputs = queries.trace.ops.lists("inputs")
    taken = queries.bases[inputs.flat[inputs.offsets[sent + 1] : inputs.offsets[op]]]
    return None if queries.base(row) in taken.tolist() else sent


RULE: Final = CostRule(
    slug="device-to-host-copy",
    find=find_copies("device-to-host-copy", "d2h", of_one_tensor, _round_trip, _unused, _values, of_single_elements),
)
