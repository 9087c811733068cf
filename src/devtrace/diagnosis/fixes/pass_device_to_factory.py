"""`torch.zeros(n)` becomes `torch.zeros(n, device=x.device)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import numpy as np

from devtrace.diagnosis.evidence import access_paths, origins
from devtrace.diagnosis.evidence.case import Case, Verdict
from devtrace.diagnosis.evidence.frame_code import first_parameter, names_device
from devtrace.diagnosis.fixes.fix import Fix, Moved, frame_at, suggested, text_at
from devtrace.source.matching import calls_in, keyword
from devtrace.source.parsing import Source
from devtrace.source.safe_values import instance_dict
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import one_line


def pass_device_to_factory(case: Case, verdict: Verdict) -> Iterator[Fix]:
    """Pass the expected device to the factory's call; in a package's code, say so."""
    if case.origin.op < 0:
        return
    site = case.queries.trace.ops.number("site", case.origin.op)
    found, node = text_at(case, site), case.queries.source_node(site)
    call = origins.factory_call(node) if node is not None else None
    device = device_at(case, site, call) if call is not None else ""
    if found is None or call is None or not device:
        return
    code, package, argument = found.code, case.queries.package(site), f"device={device}"
    given = keyword(call, "device")
    new = code.with_argument(call, argument) if given is None else code.text_with(call, given, device)
    if package:
        yield Fix(sentence("fixed.package-factory", package=package, site=case.queries.site(site), code=one_line(new)))
        return
    if given is not None:
        edit = code.replaced(given, device)
        yield from suggested(sentence("fixed.create-with", code=argument), edit, moved=_made_by(case, [call]))
        return
    calls = _without_device(found.statement, call, code.source)
    changes: list[tuple[ast.AST, str]] = [(one, code.with_argument(one, argument)) for one in calls]
    edit = code.all_replaced(changes)
    yield from suggested(sentence("fixed.give-device", code=one_line(new)), edit, moved=_made_by(case, calls))


def _made_by(case: Case, calls: list[ast.Call]) -> Iterator[Moved]:
    """Yield what factories made on the odd device."""
    queries = case.queries
    nodes = ((site, queries.source_node(site)) for site in range(len(queries.trace.sites)))
    sites = [site for site, node in nodes if node is not None and origins.factory_call(node) in calls]
    made = np.isin(queries.trace.ops.ints("site")[: case.op], sites)
    threads = queries.trace.ops.ints("thread")[: case.op + 1]
    if threads[case.origin.op] == threads[case.op]:  # another replica has its tensors where its own inputs are
        made &= threads[:-1] == threads[case.op]
    for op in np.flatnonzero(made).tolist():
        rows = (row for row in queries.outputs(op) if queries.device(row) == case.odd_device)
        yield from (Moved(row, op + 1) for row in rows)


def device_at(case: Case, site: int, call: ast.AST) -> str:
    """Return the expected device as the function around a call can write it.

    Either the function still runs, or it is a method of an object that the variables lead to.
    """
    frame = frame_at(case, site)
    if frame is not None:
        return frame.device_of_another_call(call) or frame.device_code(frame.source.span(call).line, call)
    return _device_of_self(case, site, call) or _device_of_parameter(case, site, call)


def _device_of_self(case: Case, site: int, call: ast.AST) -> str:
    """Return `self.device`, if the method has returned but its object is there and has the attribute."""
    row, found = case.queries.site(site), case.queries.source_node(site)
    class_name = row.function.rpartition(".")[0] if row is not None else ""
    function = found.source.function(call) if found is not None else None
    if not class_name or not isinstance(function, ast.FunctionDef) or function.name == "__init__":
        return ""
    if [parameter.arg for parameter in function.args.args[:1]] != ["self"]:
        return ""
    for value in case.snapshot.walk.objects.values():
        if type(value).__qualname__ == class_name:
            named = (key for key, device in instance_dict(value).items() if names_device(device, case.expected_device))
            attribute = next((f"self.{key}" for key in named if str(key).isidentifier()), "")
            return attribute or _device_of_parameters(case, value)
    return ""


def _device_of_parameter(case: Case, site: int, call: ast.AST) -> str:
    """Return `x.device` of a parameter that the function's later ops took from the expected device.

    The function's frame is gone: it has returned, or was a replica's in another thread.
    """
    queries, found = case.queries, case.queries.source_node(site)
    function = found.source.function(call) if found is not None else None
    if found is None or not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return ""
    if found.statement is function:  # a default or a decorator, which has no parameters
        return ""
    ops = queries.trace.ops
    later = np.arange(max(case.origin.op, 0), case.op)
    later = later[ops.ints("thread")[later] == ops.number("thread", case.op)]
    for op in later.tolist():
        taken = queries.source_node(ops.number("site", op))
        name = _root(taken.node) if taken is not None and taken.source is found.source else ""
        is_here = taken is not None and taken.source.function(taken.node) is function
        on_device = [row for row in queries.inputs(op)[:1] if queries.device(row) == case.expected_device]
        if is_here and on_device and _is_kept_parameter(name, function):
            return f"{name}.device"
    return ""


def _root(node: ast.AST) -> str:
    """Return `x` of `x[:, 0]` and of `x.sum(0)`, whose first input is x."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node = node.func
    value = node.value if isinstance(node, ast.Subscript | ast.Attribute) else None
    return value.id if isinstance(value, ast.Name) else ""


def _is_kept_parameter(name: str, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether a function has a parameter of this name, and gives it no other value."""
    given = (node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    every = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return name in {each.arg for each in every} and name not in given


def _device_of_parameters(case: Case, module: object) -> str:
    first = first_parameter(module) if access_paths.is_module(module) else None
    is_expected = first is not None and case.snapshot.device_of(first) == case.expected_device
    return "next(self.parameters()).device" if is_expected else ""


def _without_device(statement: ast.stmt, call: ast.Call, source: Source) -> list[ast.Call]:
    """Return a factory's call, and the others of its statement that have no device either."""
    found = [call]
    for node in calls_in(statement):
        if node is not call and origins.is_factory_without_device(node, source):
            inside = any(node in ast.walk(other) or other in ast.walk(node) for other in found)
            found += [] if inside else [node]
    return found
