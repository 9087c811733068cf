"""device-to-host-copy: data that a line copies from a device to the CPU."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

import numpy as np

from devtrace.diagnosis.evidence import reads
from devtrace.diagnosis.evidence.trace_queries import HOST, SourceNode, TraceQueries
from devtrace.diagnosis.findings import Finding
from devtrace.diagnosis.ledger import Tally
from devtrace.diagnosis.rules import copies_of_a_line
from devtrace.diagnosis.rules.copies_of_a_line import AGAIN, CopiesOfALine, Habit, is_of_ddp
from devtrace.diagnosis.rules.rule import CostRule
from devtrace.source.matching import assigned_names, called_name, calls_in, match_code, names_in
from devtrace.source.vocabulary import MAKES
from devtrace.words.catalogue import sentence

_FAR: Final = 400
"""Ops after a copy within which what was made of it must come back, to be of the same step."""
_SAMPLE: Final = 20
"""Copies of a line that are looked at."""
_ARRAYS: Final = ("np", "numpy", "torch", "th")


def copies_to_host(queries: TraceQueries, tally: Tally) -> Iterator[Finding]:
    return copies_of_a_line.findings(queries, tally, "d2h", _FINDERS, _finding)


RULE: Final = CostRule(
    slug="device-to-host-copy",
    find=copies_to_host,
)


def _finding(copies: CopiesOfALine, habit: Habit | None, lines: list[int]) -> Finding:
    return copies_of_a_line.finding("device-to-host-copy", copies, habit, lines)


def _back_and_forth(copies: CopiesOfALine) -> Habit | None:
    is_frequent = copies.count >= AGAIN and len(copies.ops) >= AGAIN
    return (_round_trip(copies) or _unused(copies)) if is_frequent else None


def _values(copies: CopiesOfALine) -> Habit | None:
    """Find values of a training's own work (a loss, a norm, a score) that the host takes in each step."""
    queries, found = copies.queries, copies.queries.source_node(copies.line)
    severity = copies_of_a_line.weight_of_each_step(copies)
    if found is None or severity is None or _is_of_a_package_that_trains(copies):
        return None
    some = copies.ops[:_SAMPLE]
    if not reads.is_of_the_line(queries, found, some[0]) or reads.is_a_choice(queries, some[0]):
        return None
    if sum(reads.is_trained(queries, op) for op in some) * 2 < len(some):
        return None
    message = sentence("copy.in-each-step", name=copies_of_a_line.source_text(copies))
    return Habit(message, sentence("copy.in-each-step.help"), severity=severity)


def _is_of_a_package_that_trains(copies: CopiesOfALine) -> bool:
    return bool(copies.queries.package(copies.line)) and copies.steps.are_of_a_package(np.array(copies.ops))


_FINDERS: Final = (copies_of_a_line.of_one_tensor, _back_and_forth, _values, copies_of_a_line.of_single_elements)


def _round_trip(copies: CopiesOfALine) -> Habit | None:
    """Find data that leaves a device, is worked on by the host and comes back, step after step."""
    queries, ops = copies.queries, copies.ops
    if queries.trace.ops.raw("phase", ops[-1]) == "backward":  # the gradient of work that began on the host
        return None
    found = queries.source_node(copies.line)
    if found is not None and called_name(found.node) not in MAKES and reads.is_within_torch(queries, found, ops[0]):
        return None
    for key, find_return in _RETURNS:
        sites = [find_return(queries, op) for op in ops[:_SAMPLE]]
        returned = [site for site in sites if site is not None]
        if returned and len(returned) * 2 >= len(sites):
            message = sentence(key, name=copies_of_a_line.source_text(copies), site=queries.site(returned[0]))
            return Habit(message, sentence("copy.back.help"))
    return None


def _return_of_its_result(queries: TraceQueries, op: int) -> int | None:
    """Return the site where something made of a copied tensor is copied back to a device, within the next ops."""
    reached = set(queries.outputs(op))
    computed: set[int] = set()
    ops = queries.trace.ops
    for later in range(op + 1, min(op + _FAR, len(ops))):
        taken = queries.inputs(later)
        if reached.isdisjoint(taken):
            continue
        if ops.number("device", later) == queries.host:
            reached.update(queries.outputs(later))
            if queries.kind(later) == "compute" or not computed.isdisjoint(taken):
                computed.update(queries.outputs(later))
        elif queries.kind(later) == "copy" and ops.raw("phase", later) != "backward" and not computed.isdisjoint(taken):
            return int(queries.op_users[later])
    return None


def _return_of_its_gradient(queries: TraceQueries, op: int) -> int | None:
    """Return the site where a copy's gradient is copied back: a trained loss or layer that computes on the host."""
    ops, tensors = queries.trace.ops, queries.trace.tensors
    source = queries.inputs(op)[:1]
    backward = ops.ints("phase")[op + 1 : op + _FAR] == queries.strings.get("backward", -1)
    for later in (op + 1 + np.flatnonzero(backward)).tolist():
        if queries.kind(later) == "copy" and source and ops.number("device", later) != queries.host:
            gradient = queries.outputs(later)[:1]
            if gradient and tensors.number("shape", gradient[0]) == tensors.number("shape", source[0]):
                return int(queries.cost_users[later])
    return None


def _return_from_numpy(queries: TraceQueries, op: int) -> int | None:
    """Return the site where a copy to a device takes what numpy alone made of the copy: in its statement or below."""
    ops = queries.trace.ops
    copied = queries.source_node(int(queries.op_users[op]))
    for later in range(op + 1, min(op + 8, len(ops)) if copied is not None else 0):
        if queries.kind(later) == "copy" and ops.number("device", later) != queries.host:
            outer = queries.source_node(int(queries.op_users[later]))
            is_newer = queries.inputs(later) and queries.producer(queries.inputs(later)[0]) > op
            is_numpys = copied is not None and outer is not None and _is_made_by_numpy(copied, outer)
            return int(queries.op_users[later]) if is_numpys and is_newer else None
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


def _unused(copies: CopiesOfALine) -> Habit | None:
    """Find data that was sent to a device on its own and is fetched back as it was sent."""
    queries = copies.queries
    sent = [_copy_in_vain(queries, op) for op in copies.ops[:_SAMPLE]]
    if sent[0] is None or any(op is None for op in sent):
        return None
    site = int(queries.op_users[sent[0]])
    if not _moves_one_tensor(queries.source_node(site)) and not is_of_ddp(queries, sent[0]):
        return None
    message = sentence("copy.unused", name=copies_of_a_line.source_text(copies), site=queries.site(site))
    return Habit(message, sentence("copy.unused.help"))


def _moves_one_tensor(found: SourceNode | None) -> bool:
    """Return whether somebody chose this tensor, `tags = tags.to(device)`; no line that moves a whole batch."""
    moved = match_code("$x = $x.$move(...)", found.statement) if found is not None else None
    return moved is not None and isinstance(moved["x"], ast.Name)


def _copy_in_vain(queries: TraceQueries, op: int) -> int | None:
    """Return the copy that sent to the device what an op fetches back, if no other op between took it."""
    row = next(iter(queries.inputs(op)), -1)
    sent = queries.producer(queries.base(row)) if row >= 0 else -1
    if not 0 <= op - sent < _FAR or queries.kind(sent) != "copy" or queries.device(queries.inputs(sent)[0]) != HOST:
        return None
    inputs = queries.trace.ops.lists("inputs")
    taken = queries.bases[inputs.flat[inputs.offsets[sent + 1] : inputs.offsets[op]]]
    return None if queries.base(row) in taken.tolist() else sent
