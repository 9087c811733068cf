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
"""Ops by which a device computes what an operator of Python's gives for a tensor and a number."""
_PLAIN: Final = (*PASSED_ON, ast.Attribute, ast.Subscript)


# By the source: a value that a statement of the loop uses on the device.


def is_used_again(cost: Cost) -> Names | None:
    """Find a value that each step reads and uses on the device again, if nothing else needs it in the loop."""
    if cost.count < OFTEN or not cost.is_of_the_user or not cost.pace.is_of_each_step:
        return None
    form, site = "use", _use_in_reading_statement(cost)
    for loop in cost.place.loops[:1] if site is None else ():
        form, site = _use_in_later_statement(cost, cost.place, loop) or ("", None)
    return {"why": _FORMS[form], "site": site} if site is not None else None


def _gives_a_number(cost: Cost) -> bool:
    return cost.kind == "syncs" and called_name(cost.node) in GIVES_NUMBERS  # `max(a, b)` may give a tensor


def _use_in_reading_statement(cost: Cost) -> Site | None:
    """Return where a device computes with the value in the very statement that reads it: `y / y.max().item()`."""
    ops = list[str]()  # names of what may compute: `div`
    for use in uses(cost.place.source, cost.node) if _gives_a_number(cost) else ():
        if isinstance(use.outer, ast.BinOp):
            other_side = {use.outer.left, use.outer.right} - {use.inner}
            if not any(isinstance(code, ast.Constant) or called_name(code) in GIVES_NUMBERS for code in other_side):
                ops += _COMPUTES.get(type(use.outer.op).__name__, ())
    return _site_of_most(cost, cost.place.statement, ops) if ops else None


def _use_in_later_statement(cost: Cost, place: SourceNode, loop: ast.stmt) -> tuple[str, Site] | None:
    """Return where a loop first uses the value on a device, and as what; None if a statement needs it on the CPU."""
    source, uses_on_device = place.source, list[tuple[str, Site]]()
    names = list(_variables_given_by(place.statement)) if _passes_the_value_on(place) else []
    for name in names:
        for use in (node for node in nodes_of(ast.Name, loop) if node.id == name and is_read(node)):
            statement = source.statement(use)
            if statement is place.statement:
                continue
            is_in_function = any(isinstance(code, DEFINED) for code in source.up_to(use, loop))
            if is_in_function or not isinstance(statement, _SIMPLE):
                return None
            form = is_tensor_there(source, use)
            may_be_tensor = form == "return" or (form == "use" and _gives_a_number(cost))
            site = _site_of_most(cost, statement) if may_be_tensor else None
            is_passed_on = all(isinstance(code, PASSED_ON) for code in source.up_to(use, alone(statement) or statement))
            if site is not None:
                uses_on_device.append((form, site))
            elif not _can_wait(place, use, statement, is_passed_on=is_passed_on):
                return None
            elif is_passed_on:
                names += [other for other in _variables_given_by(statement) if other not in names]
    return uses_on_device[0] if uses_on_device else None


def _passes_the_value_on(place: SourceNode) -> bool:
    """Return whether the reading statement assigns the value that it reads, and not what some function makes of it."""
    around = list(place.source.up_to(place.node, place.statement))
    calls = [code for code in around if isinstance(code, ast.Call)]
    functions = [call.func for call in calls if call not in (place.node, alone(place.statement))]
    takers = [code for code in functions if place.node not in ast.walk(code) and variable(code) not in TAKES_VALUES]
    are_known = all(package(taker, place.source) in ("numpy", "torch") for taker in takers)
    return are_known and all(isinstance(code, (*_PLAIN, ast.Call)) for code in around)


def _variables_given_by(statement: ast.stmt) -> Iterator[str]:
    """Yield `x` for `x = value`, and `words` for `words.append(value)`."""
    call = alone(statement)
    targets = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
    if call is not None:
        targets = [owner_of(call)] if called_name(call) in EXTENDS else []
    yield from filter(None, map(variable, targets))


def _can_wait(place: SourceNode, use: ast.Name, statement: ast.stmt, *, is_passed_on: bool) -> bool:
    """Return whether what a statement makes of the value is only kept: `words.append(text[x])`, `out += names[x]`."""
    if any(isinstance(code, ast.IfExp | ast.Compare | ast.BoolOp) for code in place.source.up_to(use, statement)):
        return False
    call = alone(statement)
    if call is not None:
        return called_name(call) in EXTENDS
    is_looked_up = match_code("$target = $table[$key]", statement) is not None
    return is_looked_up or isinstance(statement, ast.AugAssign) or is_passed_on


def _site_of_most(cost: Cost, statement: ast.stmt, names: Sequence[str] = ()) -> Site | None:
    """Return where a statement makes, fills or computes a device's tensor after most reads, by an op of any `names`."""
    queries, span = cost.queries, cost.place.source.span(statement)

    def site_between(read: OpId, next_read: OpId) -> Site | None:
        of_read = queries.site(queries.op_user(read))
        for op in map(OpId, range(read + 1, next_read)):
            is_device_work = not is_on_host(queries, op) and queries.kind(op) in ("copy", "create", "compute")
            is_one = is_device_work and (not names or op_of(queries, op).removesuffix("_") in names)
            site = queries.site(queries.op_user(op)) if is_one else None
            is_of_file = site and of_read and (site.file, site.cell_id) == (of_read.file, of_read.cell_id)
            if site and is_of_file and span.line <= site.line <= span.end_line:
                return site
        return None

    sites = [site_between(*reads) for reads in list(pairwise(cost.ops))[:SAMPLE]]
    known_sites = [site for site in sites if site is not None]
    return known_sites[0] if known_sites and 2 * len(known_sites) >= len(sites) else None


_RETURN_FORMS: Final = family("copy.back-*", "copy.back-computed", "copy.back-numpy", "copy.back-gradient")


# By the trace: data that the host works on.


def comes_back(cost: Cost) -> Names | None:
    """Find data that leaves a device, is worked on by the host and comes back before the line runs in the next step."""
    queries, ops = cost.queries, cost.ops
    if len(ops) < AGAIN or queries.trace.ops.raw("phase", ops[-1]) == "backward" or are_lengths(cost):
        return None  # the gradient of work that began on the host
    if is_of_torch(cost) and called_name(cost.node) not in MAKES and not names_the_op(cost, cost.ops[0]):
        return None
    per_step = max(round(cost.count / cost.pace.steps), 1) if cost.pace.is_of_each_step else 1
    ends = [*ops[per_step:], *[len(queries.trace.ops)] * per_step]
    sample = list(zip(ops, ends, strict=True))[:: len(ops) // SAMPLE + 1]
    for form, find_return in _RETURNS.items():
        returns = [back for op, end in sample if (back := find_return(queries, op, end)) >= 0]
        if returns and len(returns) * 2 >= len(sample):
            users = queries.cost_users if form == "gradient" else queries.op_users
            site = queries.site(int(users[returns[0]]))  # type: ignore[arg-type]
            return {"why": _RETURN_FORMS[form], "name": cost.name, "site": site, "by_numpy": form == "numpy"}
    return None


def is_written_back(cost: Cost) -> Names | None:
    """Find data that the loop gives back to the device: by the source, where the trace has no work of the CPU."""
    use = is_used_again(cost) if not are_lengths(cost) else None
    return {"name": brief(cost.place.source.segment(cost.node)), "site": use["site"]} if use is not None else None


def are_lengths(cost: Cost) -> bool:
    """Return whether the copies are lengths by which a device packs sequences: torch needs these on the CPU."""
    queries = cost.queries
    ends = [*cost.ops[1:], len(queries.trace.ops)]
    return any(
        queries.op_name(taker).startswith(LENGTHS_ON_HOST) and not is_on_host(queries, taker)
        for op, end in list(zip(cost.ops, ends, strict=True))[:SAMPLE]
        for taker in takers_after(queries, op, lambda other: is_on_host(queries, other), end)
    )


def _return_of_result(queries: TraceQueries, op: OpId, end: int) -> OpId:
    """Return the op by which something made of a copied tensor is copied back to a device; -1 for none."""
    results, copies = set[TensorId](), list[OpId]()
    for taker in takers_after(queries, op, lambda other: is_on_host(queries, other), end):
        takes_result = not results.isdisjoint(queries.inputs(taker))
        if is_on_host(queries, taker):
            results.update(queries.outputs(taker) if takes_result or queries.kind(taker) == "compute" else ())
        elif queries.kind(taker) == "copy" and queries.trace.ops.raw("phase", taker) != "backward" and takes_result:
            copies.append(taker)
    return min(copies, default=NO_OP)


def _copies_to_device(queries: TraceQueries, op: OpId, end: int) -> Iterator[OpId]:
    on_device = queries.trace.ops.ints("device")[op + 1 : end] != queries.host
    yield from map(OpId, (op + 1 + np.flatnonzero(on_device & queries.is_kind("copy")[op + 1 : end])).tolist())


def _return_of_gradient(queries: TraceQueries, op: OpId, end: int) -> OpId:
    """Return the op that copies a copy's gradient back: of a trained loss or layer that computes on the host."""
    shapes, copied = queries.trace.tensors.ints("shape"), queries.carried(op)[:1]
    copies = (copy for copy in _copies_to_device(queries, op, end) if queries.is_phase("backward")[copy])
    gradients = (copy for copy in copies if list(shapes[queries.outputs(copy)[:1]]) == list(shapes[copied]))
    return next(gradients, NO_OP)


def _return_from_numpy(queries: TraceQueries, op: OpId, end: int) -> OpId:
    """Return the copy to a device that takes what numpy alone made of the copy."""
    place = queries.source_node(queries.op_user(op))
    for copy_back in _copies_to_device(queries, op, end):
        is_of_new_tensor = any(queries.producer(tensor) > op for tensor in queries.carried(copy_back))
        if is_of_new_tensor and _is_made_by_numpy(place, queries.source_node(queries.op_user(copy_back))):
            return copy_back
    return NO_OP


_RETURNS: Final[dict[str, Callable[[TraceQueries, OpId, int], OpId]]] = {
    "computed": _return_of_result,
    "numpy": _return_from_numpy,
    "gradient": _return_of_gradient,
}


def _is_made_by_numpy(copy: SourceNode, copy_back: SourceNode) -> bool:
    """Return whether only arrays lead from a copy to the copy back: `a = x.cpu().numpy()`, then `torch.from_numpy(a)`.

    They are of one function, by assignments in between, and nothing but numpy, torch and their own methods takes them.
    Of a call that copies both ways within itself (`pipeline.step(batch)`) nothing is known.
    """
    source, function = copy.source, copy.function
    if copy_back.source is not source or copy_back.node is copy.node or copy_back.function is not function:
        return False
    first, last = source.span(copy.statement).line, source.span(copy_back.statement).line
    arrays = set[str]()  # variables

    def uses_data(code: ast.AST) -> bool:
        return not arrays.isdisjoint(read_in(code)) or copy.node in ast.walk(code)

    def gives_arrays(code: ast.AST) -> bool:
        """Return whether each call that takes the copied data is numpy's, torch's, Python's or a method of the data."""
        takers = [call.func for call in calls_in(code) if any(map(uses_data, (*call.args, *call.keywords)))]
        return all(
            (isinstance(taker, ast.Attribute) and uses_data(taker.value))
            or variable(taker) in TAKES_VALUES
            or package(taker, source) in ("numpy", "torch")
            for taker in takers
        )

    for statement in statements(function or source.tree):
        line = source.span(statement).line
        if isinstance(statement, ast.Assign) and first <= line < last and uses_data(statement.value):
            if not gives_arrays(statement.value):
                return False
            arrays |= binds(statement)
    return uses_data(copy_back.node) and gives_arrays(copy_back.node)
