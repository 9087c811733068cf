"""device-to-host-copy: data that a line copies from a device to the CPU.

Results are. Needless is what goes back to the device, what was only just sent there, and the values of each step.
Wrong is what the host reads before a copy that does not block is done.

    weights = score(x.cpu().numpy())                # bad: numpy computes, and the next line brings it back
    loss = (torch.from_numpy(weights).to(device) * y).mean()
    loss = (score(x) * y).mean()                    # good: torch computes on the device
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

import numpy as np

from devtrace.costs import copies, reads
from devtrace.costs.copies import of_early_reads
from devtrace.costs.cost_findings import Needless
from devtrace.costs.loops import are_taken_one_by_one
from devtrace.costs.repeated_costs import OFTEN, SAMPLE, STEPS, Habit
from devtrace.costs.round_trips import of_written_back
from devtrace.costs.same_tensor import of_one_tensor
from devtrace.diagnosis.evidence.torchs_sentences import LENGTHS_ON_HOST
from devtrace.diagnosis.evidence.trace_queries import HOST, SourceNode, TraceQueries
from devtrace.source.matching import called_name, calls_in, match_code, nodes_of, variable
from devtrace.source.parsing import Source
from devtrace.source.vocabulary import MAKES, TAKES_VALUES, package
from devtrace.trace.ids import NO_OP, NO_TENSOR, OpId, SiteId, TensorId
from devtrace.words.catalogue import sentence

_MOST: Final = 40
"""Tensors that are followed from what was copied."""


def _values(habit: Habit) -> Needless | None:
    """Find values of a training's own work (a loss, a norm, a score) that the host takes in each step."""
    queries, found = habit.queries, habit.found
    severity = copies.weight_of_each_step(habit)
    if found is None or severity is None or habit.trains_alone:
        return None
    some = habit.ops[:SAMPLE]
    if not reads.is_of_the_line(queries, found, some[0]) or reads.is_often(reads.is_a_choice, habit):
        return None
    if are_taken_one_by_one(found):
        return None
    are_numbers = habit.pace.trains and not any(queries.dims[row] for op in some for row in queries.carried(op))
    if not are_numbers and sum(reads.is_trained(queries, op) for op in some) * 2 < len(some):
        return None
    why = sentence("copy.in-each-step", name=copies.source_text(habit))
    return Needless(habit, why, sentence("copy.in-each-step.help"), severity=severity)


def _weights(habit: Habit) -> Needless | None:
    """Find weights of a model that the host takes in each step: an average that it keeps, a snapshot."""
    queries = habit.queries
    bases = [queries.base(row) for row in habit.carried]
    are_weights = bool(bases) and all(queries.trace.tensors.raw("role", base) == "parameter" for base in bases)
    if not are_weights or habit.count < OFTEN or habit.trains_alone or not habit.pace.trains:
        return None
    if not habit.is_of_each_step or habit.pace.steps < STEPS:
        return None
    why = sentence("copy.weights", name=copies.source_text(habit))
    return Needless(habit, why, sentence("copy.weights.help"))


# What goes back.


def _back(habit: Habit) -> Needless | None:
    """Find what leaves a device to come back; nothing where a packing wants it on the CPU."""
    ends = [*habit.ops[1:], len(habit.queries.trace.ops)]
    some = list(zip(habit.ops, ends, strict=True))[:SAMPLE]
    if any(_are_lengths(habit.queries, op, end) for op, end in some):
        return None
    return _round_trip(habit) or of_written_back(habit)


def _are_lengths(queries: TraceQueries, op: OpId, end: int) -> bool:
    """Return whether a device packs by what was copied, or computed from it, which has to be on the CPU."""
    rows = list(queries.outputs(op))
    for row in rows:
        for taker in (each for each in queries.takers(row) if op < each < end):
            on_host = queries.trace.ops.number("device", taker) == queries.host
            if not on_host and queries.op_name(taker).startswith(LENGTHS_ON_HOST):
                return True
            rows += [each for each in queries.outputs(taker) if on_host and each not in rows and len(rows) < _MOST]
    return False


def _round_trip(habit: Habit) -> Needless | None:
    """Find data that leaves a device, is worked on by the host and comes back before the line runs in the next step."""
    queries, ops, found = habit.queries, habit.ops, habit.found
    if len(ops) < copies.AGAIN or queries.trace.ops.raw("phase", ops[-1]) == "backward":
        return None  # the gradient of work that began on the host
    if found is not None and called_name(found.node) not in MAKES and reads.is_within_torch(queries, found, ops[0]):
        return None
    of_a_step = max(round(habit.count / habit.pace.steps), 1) if habit.pace.is_of_each_step else 1
    ends = [*ops[of_a_step:], *[len(queries.trace.ops)] * of_a_step]
    some = list(zip(ops, ends, strict=True))[:: len(ops) // SAMPLE + 1]
    name = copies.source_text(habit)
    for key, help, find_return in _RETURNS:
        sites = [find_return(queries, op, end) for op, end in some]
        returned = [site for site in sites if site is not None]
        if returned and len(returned) * 2 >= len(sites):
            why = sentence(key, name=name, site=queries.site(returned[0]))
            return Needless(habit, why, sentence(help, name=name))
    return None


def _return_of_its_result(queries: TraceQueries, op: OpId, end: int) -> SiteId | None:
    """Return the site where something made of a copied tensor is copied back to a device."""
    reached = set(queries.outputs(op))
    computed: set[TensorId] = set()
    on_host = queries.trace.ops.ints("device")[op + 1 : end] == queries.host
    for later in map(OpId, (op + 1 + np.flatnonzero(on_host | queries.is_kind("copy")[op + 1 : end])).tolist()):
        taken = queries.inputs(later)
        if reached.isdisjoint(taken):
            continue
        if on_host[later - op - 1]:
            reached.update(queries.outputs(later))
            if queries.kind(later) == "compute" or not computed.isdisjoint(taken):
                computed.update(queries.outputs(later))
        elif queries.trace.ops.raw("phase", later) != "backward" and not computed.isdisjoint(taken):
            return queries.op_user(later)
    return None


def _copies_to_device(queries: TraceQueries, op: OpId, end: int) -> Iterator[OpId]:
    on_device = queries.trace.ops.ints("device")[op + 1 : end] != queries.host
    yield from map(OpId, (op + 1 + np.flatnonzero(on_device & queries.is_kind("copy")[op + 1 : end])).tolist())


def _return_of_its_gradient(queries: TraceQueries, op: OpId, end: int) -> SiteId | None:
    """Return the site where a copy's gradient is copied back: a trained loss or layer that computes on the host."""
    shapes = queries.trace.tensors.ints("shape")
    for later in _copies_to_device(queries, op, end):
        if queries.trace.ops.raw("phase", later) == "backward":
            pair = [*queries.carried(op)[:1], *queries.outputs(later)[:1]]
            if len(pair) == 2 and shapes[pair[0]] == shapes[pair[1]]:
                return SiteId(int(queries.cost_users[later]))
    return None


def _return_from_numpy(queries: TraceQueries, op: OpId, end: int) -> SiteId | None:
    """Return the site where a copy to a device takes what numpy alone made of the copy."""
    copied = queries.source_node(queries.op_user(op))
    for later in _copies_to_device(queries, op, end) if copied is not None else ():
        outer = queries.source_node(queries.op_user(later))
        is_newer = any(queries.producer(row) > op for row in queries.carried(later))
        if is_newer and copied is not None and outer is not None and _is_made_by_numpy(copied, outer):
            return queries.op_user(later)
    return None


def _is_made_by_numpy(copied: SourceNode, outer: SourceNode) -> bool:
    """Return whether only arrays lead from a copy to the copy back: `a = x.cpu().numpy()`, then `torch.from_numpy(a)`.

    They are of one function, by assignments in between, and nothing but numpy, torch and their own methods takes them.
    Of a call that copies both ways within itself (`pipeline.step(batch)`) nothing is known.
    """
    source, function = copied.source, copied.source.function(copied.node)
    if outer.source is not source or outer.node is copied.node or source.function(outer.node) is not function:
        return False
    made: list[ast.AST] = [copied.node]
    first, last = source.span(copied.statement).line, source.span(outer.statement).line
    inner = list(nodes_of(ast.Assign, function or source.tree))
    for statement in sorted(inner, key=source.span):
        if first <= source.span(statement).line < last and _contains(statement.value, made):
            if not _is_of_arrays(statement.value, made, source):
                return False
            made += [name for target in statement.targets for name in nodes_of(ast.Name, target)]
    return _contains(outer.node, made) and _is_of_arrays(outer.node, made, source)


def _contains(code: ast.AST, made: list[ast.AST]) -> bool:
    """Return whether code has a part that is one of these, or names one of them."""
    names = set(filter(None, map(variable, made)))
    return any(part in made or variable(part) in names for part in ast.walk(code))


def _is_of_arrays(code: ast.AST, made: list[ast.AST], source: Source) -> bool:
    """Return whether each call that takes what was made of the copy is numpy's, torch's, Python's or its own method."""

    def is_known(function: ast.expr) -> bool:
        if isinstance(function, ast.Attribute) and _contains(function.value, made):
            return True
        is_pythons = variable(function) in TAKES_VALUES
        return is_pythons or package(function, source) in ("numpy", "torch")

    taking = (call for call in calls_in(code) if any(_contains(part, made) for part in (*call.args, *call.keywords)))
    return all(is_known(call.func) for call in taking)


_RETURNS: Final = (
    ("copy.back-computed", "copy.back.help", _return_of_its_result),
    ("copy.back-numpy", "copy.back-numpy.help", _return_from_numpy),
    ("copy.back-gradient", "copy.back.help", _return_of_its_gradient),
)

# What was sent in vain.


def _unused(habit: Habit) -> Needless | None:
    """Find data that was sent to a device on its own and is fetched back as it was sent."""
    queries = habit.queries
    if len(habit.ops) < copies.AGAIN:
        return None
    before = [NO_OP, *habit.ops]
    sent = [_copy_in_vain(queries, op, since) for op, since in zip(habit.ops[:SAMPLE], before, strict=False)]
    if sent[0] is None or any(op is None for op in sent):
        return None
    site = queries.op_user(sent[0])
    moving = queries.source_node(site)
    moved = match_code("$x = $x.$move(...)", moving.statement) if moving is not None else None
    is_chosen = moved is not None and variable(moved["x"]) != ""  # no line that moves a whole batch
    if not is_chosen and not copies.is_of_ddp(queries, sent[0]):
        return None
    why = sentence("copy.unused", name=copies.source_text(habit), site=queries.site(site))
    return Needless(habit, why, sentence("copy.unused.help"))


def _copy_in_vain(queries: TraceQueries, op: OpId, since: OpId) -> OpId | None:
    """Return the copy that sent to the device what an op fetches back, if no other op between took it."""
    row = next(iter(queries.carried(op)), NO_TENSOR)
    sent = queries.producer(queries.base(row)) if row >= 0 else NO_OP
    if sent <= since or queries.kind(sent) != "copy" or HOST not in map(queries.device, queries.carried(sent)):
        return None
    inputs = queries.trace.ops.lists("inputs")
    taken = queries.bases[inputs.flat[inputs.offsets[sent + 1] : inputs.offsets[op]]]
    return None if queries.base(row) in taken.tolist() else sent


_FINDS: Final = (of_early_reads, of_one_tensor, _back, _unused, _weights, _values, copies.of_single_elements)

device_to_host_copies: Final = copies.find_copies("device-to-host-copy", "d2h", *_FINDS)
