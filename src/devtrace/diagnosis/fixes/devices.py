"""How code that no frame runs any more writes the expected device, as an earlier cell or a function that has returned.

    device                              of_earlier_cell: as the move of the other parts does
    device, "cuda"                      in_cell: as the notebook knows it by then
    self.device, x.device               at: as the function can
    next(model.parameters()).device     of_owner: of what the part is attached to

A frame that runs the code knows it itself: `FailingFrame.device_code`, `.device_of_other_operand`.
"""

import ast

from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.evidence.mismatch_case import MismatchCase, Verdict
from devtrace.diagnosis.evidence.origins import near_ops, taken_by, trait_argument
from devtrace.diagnosis.evidence.source_text import newest_first
from devtrace.diagnosis.evidence.trace_queries import SourceNode
from devtrace.diagnosis.fixes.fix import frame_at
from devtrace.source import kinds
from devtrace.source.defuse import binds
from devtrace.source.kinds import names_trait
from devtrace.source.live_objects import CellText
from devtrace.source.matching import assigned_names, chain, names_in, variable
from devtrace.source.object_walk import registered
from devtrace.source.parsing import NamedFunction, own_name, parameters
from devtrace.source.safe_values import Scope, evaluate
from devtrace.trace.ids import OpId, SiteId


def of_earlier_cell(case: MismatchCase, verdict: Verdict, born: SourceNode) -> str:
    """Return the device variable of a move in another cell: `device`."""
    move, frame = case.queries.own_node(verdict.moved), case.frame_of(verdict.name)
    if not isinstance(move.node, ast.Call) or len(move.node.args) != 1:
        return ""
    are_in_cells = all(found.code.site.cell is not None and found.function is None for found in (move, born))
    (device,) = move.node.args
    return variable(device) if are_in_cells and frame.names_expected_trait(device) else ""


def in_cell(case: MismatchCase, cell: CellText, line: int) -> str:
    """Return the expected device as an earlier cell writes it above a line: `device`, or a literal where none is named.

    Empty where the notebook's name for it gets its value only later.
    """
    cells, namespace = case.queries.snapshot.cells, case.moment.namespace
    device_names = {name for name, value in namespace.items() if names_trait(value, case.expected_trait)}
    for other, source, statement in newest_first(cells[: cells.index(cell) + 1]):
        if (names := device_names & binds(statement)) and (other is not cell or source.span(statement).line < line):
            return next(iter(names))
    return "" if device_names else f'"{case.expected_trait.removesuffix(":0")}"'


def of_owner(case: MismatchCase, owner: ast.expr, code: Code) -> str:
    """Return the device of the nearest owner with other tensors: `self` of `self.pool["a"] = ...`.

    Without a live frame the owner is assumed to have some.
    """
    scopes = [Scope.of(frame) for frame in case.moment.frames]
    owners = {id(module) for name in case.names for _, module in name.modules()}
    for around in chain(owner):
        modules = [value for value in (evaluate(around, scope) for scope in scopes) if id(value) in owners]
        if not modules or any(case.is_expected(case.moment.row(tensor)) for _, tensor in registered(modules[0])):
            return f"next({code.text(around)}.parameters()).{case.queries.by.name}"
    return ""


def at(case: MismatchCase, site: SiteId, call: ast.AST) -> str:
    """Return the expected device as the function around a call can write it.

    Either the function still runs, or it is a method of an object that the variables lead to.
    """
    frame = frame_at(case, site)
    if frame.is_there:
        return frame.device_code(frame.source.span(call).line, call)
    place = case.queries.source_node(site)
    function = place.source.function(call)
    if not isinstance(function, NamedFunction):
        return ""
    in_body = place.statement is not function  # a default or a decorator has no parameters
    return _of_self(case, place, function) or (_of_parameter(case, function) if in_body else "")


def _of_self(case: MismatchCase, place: SourceNode, function: NamedFunction) -> str:
    """Return `self.device`, if the method has returned but its object is there and has the attribute."""
    own = own_name(place.source, function)
    if not own or function.name == "__init__":
        return ""
    value = next(iter(case.objects_of_method(place)), None)
    attribute = next((f"{own}.{key}" for key, _ in kinds.attributes_that_name(case.expected_trait, value)), "")
    is_a_module_there = kinds.is_module(value) and case.moment.trait_of(value) == case.expected_trait
    return attribute or (f"next({own}.parameters()).{case.queries.by.name}" if is_a_module_there else "")


def _of_parameter(case: MismatchCase, function: NamedFunction) -> str:
    """Return `x.device` of a parameter that the function's other ops took from the expected device, nearest first.

    Or what a factory of the function was given: `device=x.device`. The function's frame is gone: it has returned, or
    was a replica's in another thread.
    """
    queries, birth = case.queries, OpId(max(case.origin.op, 0))
    unchanged = set(parameters(function)) - set(assigned_names(function))
    for op, taken in near_ops(queries, birth, case.op):  # a GPU's backward pass, which fails, has a thread of its own
        if function not in taken.source.ancestors(taken.node):
            continue
        argument, name = trait_argument(taken, queries.by), next(iter(taken_by(taken.source, taken.node)), "")
        rows = queries.outputs(op) if argument is not None else queries.inputs(op)[:1]
        is_expected = any(queries.trait(row) == case.expected_trait for row in rows)
        if is_expected and argument is not None and names_in(argument) <= unchanged:
            return taken.code.text(argument)
        if is_expected and argument is None and name in unchanged:
            return f"{name}.{queries.by.name}"
    gradients = parameters(function)[1:] if case.mismatch.of == "gradient" and function.name == "backward" else []
    return next((f"{name}.{queries.by.name}" for name in gradients if name in unchanged), "")
