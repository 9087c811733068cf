"""What leaves a device to come back in the same step: it could stay there.

    weights = score(x.cpu().numpy())                # bad: numpy computes, and the next line brings it back
    loss = (torch.from_numpy(weights).to(device) * y).mean()
    loss = (score(x) * y).mean()                    # good: torch computes on the device

A number that is read to be used on the device again: `token.fill_(word.item())`, where `token.copy_(word)` needs none.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from devtrace.costs.reads import is_of_torch, names_the_op
from devtrace.costs.repeated_costs import AGAIN, OFTEN, SAMPLE, Cost, Names
from devtrace.costs.uses import PASSED_ON, is_tensor_there, uses
from devtrace.costs.values import is_on_host, op_of, takers_after
from devtrace.diagnosis.evidence.source_text import brief
from devtrace.diagnosis.evidence.torchs_sentences import LENGTHS_ON_HOST
from devtrace.diagnosis.evidence.trace_queries import SourceNode, TraceQueries
from devtrace.diagnosis.findings import Site
from devtrace.source.defuse import DEFINED, binds, read_in, statements
from devtrace.source.matching import alone, called_name, calls_in, is_read, match_code, nodes_of, owner_of, variable
from devtrace.source.vocabulary import EXTENDS, GIVES_NUMBERS, MAKES, TAKES_VALUES, package
from devtrace.trace.ids import NO_OP, OpId, TensorId
from devtrace.words.catalogue import family

_FORMS: Final = family("host-sync.to-*", "host-sync.to-return", "host-sync.to-use")
_SIMPLE: Final = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr)
_COMPUTES: Final = {
    "Add": ("add",), "Sub": ("sub", "rsub"), "Mult": ("mul",), "Div": ("div", "reciprocal"), "Pow": ("pow",)
}  # fmt: skip
"""What a device computes for an operator between a tensor and a number."""
_PLAIN: Final = (*PASSED_ON, ast.Attribute, ast.Subscript)


# By the source: a value that a statement of the loop uses on the device.


def is_used_again(cost: Cost) -> Names | None:
    """Find what each step reads and uses on the device again, if nothing else needs it before the loop ends."""
    if cost.count < OFTEN or not cost.is_of_the_user or not cost.pace.is_of_each_step:
        return None
    form, site = "use", _used_at_once(cost)
    for loop in cost.found.loops[:1] if site is None else ():
        form, site = _used_later(cost, cost.found, loop) or ("", None)
    return {"why": _FORMS[form], "site": site} if site is not None else None


def _gives_a_number(cost: Cost) -> bool:
    return cost.kind == "syncs" and called_name(cost.node) in GIVES_NUMBERS  # `max(a, b)` may give a tensor


def _used_at_once(cost: Cost) -> Site | None:
    """Return where a device computes with the value in the very statement that reads it: `y / y.max().item()`."""
    names = list[str]()  # of ops that may be it: `div`
    for use in uses(cost.found.source, cost.node) if _gives_a_number(cost) else ():
        if isinstance(use.outer, ast.BinOp):
            sides = {use.outer.left, use.outer.right} - {use.inner}
            if not any(isinstance(other, ast.Constant) or called_name(other) in GIVES_NUMBERS for other in sides):
                names += _COMPUTES.get(type(use.outer.op).__name__, ())
    return _site_of_most(cost, cost.found.statement, names) if names else None


def _used_later(cost: Cost, found: SourceNode, loop: ast.stmt) -> tuple[str, Site] | None:
    """Return where a loop first uses the value on a device, and as what; None if a statement needs it on the CPU."""
    source, again = found.source, list[tuple[str, Site]]()
    names = list(_given_by(found.statement)) if _keeps_the_value(found) else []
    for name in names:
        for use in (node for node in nodes_of(ast.Name, loop) if node.id == name and is_read(node)):
            statement = source.statement(use)
            if statement is found.statement:
                continue
            is_apart = any(isinstance(each, DEFINED) for each in source.up_to(use, loop))
            if is_apart or not isinstance(statement, _SIMPLE):
                return None
            form = is_tensor_there(source, use)
            is_one = form == "return" or (form == "use" and _gives_a_number(cost))
            site = _site_of_most(cost, statement) if is_one else None
            is_passed_on = all(isinstance(each, PASSED_ON) for each in source.up_to(use, alone(statement) or statement))
            if site is not None:
                again.append((form, site))
            elif not _can_wait(found, use, statement, is_passed_on=is_passed_on):
                return None
            elif is_passed_on:
                names += [each for each in _given_by(statement) if each not in names]
    return again[0] if again else None


def _keeps_the_value(found: SourceNode) -> bool:
    """Return whether the reading statement gives on what it reads, and not what some function makes of it."""
    around = list(found.source.up_to(found.node, found.statement))
    calls = [each for each in around if isinstance(each, ast.Call)]
    made = [each.func for each in calls if each not in (found.node, alone(found.statement))]
    others = [each for each in made if found.node not in ast.walk(each) and variable(each) not in TAKES_VALUES]
    are_known = all(package(each, found.source) in ("numpy", "torch") for each in others)
    return are_known and all(isinstance(each, (*_PLAIN, ast.Call)) for each in around)


def _given_by(statement: ast.stmt) -> Iterator[str]:
    """Yield the variables that a statement gives its value, or to whose list it adds that."""
    call = alone(statement)
    targets = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
    if call is not None:
        targets = [owner_of(call)] if called_name(call) in EXTENDS else []
    yield from filter(None, map(variable, targets))


def _can_wait(found: SourceNode, use: ast.Name, statement: ast.stmt, *, is_passed_on: bool) -> bool:
    """Return whether what a statement makes of the value is only kept: `words.append(text[x])`, `out += names[x]`."""
    if any(isinstance(each, ast.IfExp | ast.Compare | ast.BoolOp) for each in found.source.up_to(use, statement)):
        return False
    call = alone(statement)
    if call is not None:
        return called_name(call) in EXTENDS
    is_looked_up = match_code("$target = $table[$key]", statement) is not None
    return is_looked_up or isinstance(statement, ast.AugAssign) or is_passed_on


def _site_of_most(cost: Cost, back: ast.stmt, names: Sequence[str] = ()) -> Site | None:
    """Return the site at which a statement makes, fills or computes a device's tensor after most of the reads.

    If `names` are given, by an op of one of these.
    """
    queries, span = cost.queries, cost.found.source.span(back)

    def site_of(first: OpId, last: OpId) -> Site | None:
        of_read = queries.site(queries.op_user(first))
        for op in map(OpId, range(first + 1, last)):
            is_made = not is_on_host(queries, op) and queries.kind(op) in ("copy", "create", "compute")
            is_one = is_made and (not names or op_of(queries, op).removesuffix("_") in names)
            site = queries.site(queries.op_user(op)) if is_one else None
            is_of_file = site and of_read and (site.file, site.cell_id) == (of_read.file, of_read.cell_id)
            if site and is_of_file and span.line <= site.line <= span.end_line:
                return site
        return None

    sites = [site_of(*pair) for pair in list(pairwise(cost.ops))[:SAMPLE]]
    there = [site for site in sites if site is not None]
    return there[0] if there and 2 * len(there) >= len(sites) else None


_RETURN_FORMS: Final = family("copy.back-*", "copy.back-computed", "copy.back-numpy", "copy.back-gradient")


# By the trace: data that the host works on.


def comes_back(cost: Cost) -> Names | None:
    """Find data that leaves a device, is worked on by the host and comes back before the line runs in the next step."""
    queries, ops = cost.queries, cost.ops
    if len(ops) < AGAIN or queries.trace.ops.raw("phase", ops[-1]) == "backward" or are_lengths(cost):
        return None  # the gradient of work that began on the host
    if is_of_torch(cost) and called_name(cost.node) not in MAKES and not names_the_op(cost, cost.ops[0]):
        return None
    of_a_step = max(round(cost.count / cost.pace.steps), 1) if cost.pace.is_of_each_step else 1
    ends = [*ops[of_a_step:], *[len(queries.trace.ops)] * of_a_step]
    some = list(zip(ops, ends, strict=True))[:: len(ops) // SAMPLE + 1]
    for form, find_return in _RETURNS.items():
        returned = [op for op in (find_return(queries, *each) for each in some) if op >= 0]
        if returned and len(returned) * 2 >= len(some):
            paid_at = queries.cost_users if form == "gradient" else queries.op_users
            site = queries.site(int(paid_at[returned[0]]))  # type: ignore[arg-type]
            return {"why": _RETURN_FORMS[form], "name": cost.name, "site": site, "by_numpy": form == "numpy"}
    return None


def is_written_back(cost: Cost) -> Names | None:
    """Find what the loop gives the device back: by the source, where the CPU computes nothing that was recorded."""
    again = is_used_again(cost) if not are_lengths(cost) else None
    return {"name": brief(cost.found.source.segment(cost.node)), "site": again["site"]} if again is not None else None


def are_lengths(cost: Cost) -> bool:
    """Return whether a device packs by what was copied, or computed from it, which has to be on the CPU."""
    queries = cost.queries
    ends = [*cost.ops[1:], len(queries.trace.ops)]
    return any(
        queries.op_name(taker).startswith(LENGTHS_ON_HOST) and not is_on_host(queries, taker)
        for op, end in list(zip(cost.ops, ends, strict=True))[:SAMPLE]
        for taker in takers_after(queries, op, lambda each: is_on_host(queries, each), end)
    )


def _return_of_result(queries: TraceQueries, op: OpId, end: int) -> OpId:
    """Return the op by which something made of a copied tensor is copied back to a device; -1 for none."""
    computed, found = set[TensorId](), list[OpId]()
    for taker in takers_after(queries, op, lambda each: is_on_host(queries, each), end):
        is_computed = not computed.isdisjoint(queries.inputs(taker))
        if is_on_host(queries, taker):
            computed.update(queries.outputs(taker) if is_computed or queries.kind(taker) == "compute" else ())
        elif queries.kind(taker) == "copy" and queries.trace.ops.raw("phase", taker) != "backward" and is_computed:
            found.append(taker)
    return min(found, default=NO_OP)


def _copies_to_device(queries: TraceQueries, op: OpId, end: int) -> Iterator[OpId]:
    on_device = queries.trace.ops.ints("device")[op + 1 : end] != queries.host
    yield from map(OpId, (op + 1 + np.flatnonzero(on_device & queries.is_kind("copy")[op + 1 : end])).tolist())


def _return_of_gradient(queries: TraceQueries, op: OpId, end: int) -> OpId:
    """Return the op that copies a copy's gradient back: of a trained loss or layer that computes on the host."""
    shapes, own = queries.trace.tensors.ints("shape"), queries.carried(op)[:1]
    backward = (each for each in _copies_to_device(queries, op, end) if queries.is_phase("backward")[each])
    alike = (each for each in backward if list(shapes[queries.outputs(each)[:1]]) == list(shapes[own]))
    return next(alike, NO_OP)


def _return_from_numpy(queries: TraceQueries, op: OpId, end: int) -> OpId:
    """Return the copy to a device that takes what numpy alone made of the copy."""
    copied = queries.source_node(queries.op_user(op))
    for later in _copies_to_device(queries, op, end):
        is_newer = any(queries.producer(row) > op for row in queries.carried(later))
        if is_newer and _is_made_by_numpy(copied, queries.source_node(queries.op_user(later))):
            return later
    return NO_OP


_RETURNS: Final[dict[str, Callable[[TraceQueries, OpId, int], OpId]]] = {
    "computed": _return_of_result,
    "numpy": _return_from_numpy,
    "gradient": _return_of_gradient,
}


def _is_made_by_numpy(copied: SourceNode, outer: SourceNode) -> bool:
    """Return whether only arrays lead from a copy to the copy back: `a = x.cpu().numpy()`, then `torch.from_numpy(a)`.

    They are of one function, by assignments in between, and nothing but numpy, torch and their own methods takes them.
    Of a call that copies both ways within itself (`pipeline.step(batch)`) nothing is known.
    """
    source, function = copied.source, copied.function
    if outer.source is not source or outer.node is copied.node or outer.function is not function:
        return False
    first, last = source.span(copied.statement).line, source.span(outer.statement).line
    made = set[str]()  # variables

    def has(code: ast.AST) -> bool:
        return not made.isdisjoint(read_in(code)) or copied.node in ast.walk(code)

    def are_arrays(code: ast.AST) -> bool:
        """Return whether each call that takes what was made of the copy is numpy's, torch's, Python's or a method."""
        taking = [call.func for call in calls_in(code) if any(map(has, (*call.args, *call.keywords)))]
        return all(
            (isinstance(each, ast.Attribute) and has(each.value))
            or variable(each) in TAKES_VALUES
            or package(each, source) in ("numpy", "torch")
            for each in taking
        )

    for each in statements(function or source.tree):
        if isinstance(each, ast.Assign) and first <= source.span(each).line < last and has(each.value):
            if not are_arrays(each.value):
                return False
            made |= binds(each)
    return has(outer.node) and are_arrays(outer.node)
