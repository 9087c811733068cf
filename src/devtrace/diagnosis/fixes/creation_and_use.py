"""Mends where a tensor is made and where it is used."""

from __future__ import annotations

import ast
from typing import Final

from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.evidence import access_paths, origins
from devtrace.diagnosis.evidence.case import Case, Verdict
from devtrace.diagnosis.evidence.failure_snapshot import registered
from devtrace.diagnosis.evidence.frame_code import FailingFrame, says
from devtrace.diagnosis.evidence.trace_queries import SourceNode
from devtrace.diagnosis.fixes.fix import Fix, code_at, made, standing, text_at
from devtrace.source.reading import instance_dict
from devtrace.words.text_format import one_line


def give_the_device(case: Case, verdict: Verdict) -> Fix | None:
    """`device=x.device` in the factory's call."""
    if case.origin.op < 0:
        return None
    site = case.queries.trace.ops.number("site", case.origin.op)
    found = text_at(case, site)
    call = origins.factory_call(found[1]) if found is not None else None
    device = _device_at(case, site, call) if call is not None else ""
    if found is None or call is None or not device:
        return None
    code, package = found[0], case.queries.package(site)
    if package:
        return Fix(f"in {package}, {case.queries.site(site)}: {one_line(_told(code, call, device))}; {OTHERS}")
    word = next((word for word in call.keywords if word.arg == "device"), None)
    if word is not None:
        return made(f"create it with device={device}", code.replaced(word.value, device))
    told: list[tuple[ast.AST, str]] = [(one, _told(code, one, device)) for one in _untold(found[1], call)]
    return made(f"give it the device: {one_line(_told(code, call, device))}", code.all_replaced(told))


OTHERS: Final = "use a release of the package that has it, or report it there"


def _device_at(case: Case, site: int, call: ast.AST) -> str:
    """The home device as the function of a call says it: still running, or a method of an object at hand."""
    stand = standing(case, site)
    if stand is not None:
        line = stand.code.source.span(call).line
        return stand.told_beside(call) or stand.device(line, call)
    return _of_its_object(case, site, call)


def _of_its_object(case: Case, site: int, call: ast.AST) -> str:
    """`self.device`, where the method has returned but its module is there and says its device."""
    row, place = case.queries.site(site), case.queries.source_node(site)
    klass = row.function.rpartition(".")[0] if row is not None else ""
    function = place.source.function(call) if place is not None else None
    given = function.args.args if isinstance(function, ast.FunctionDef) else []
    if not klass or not given or given[0].arg != "self" or getattr(function, "name", "") == "__init__":
        return ""
    for value in case.snapshot.walk.objects.values():
        if access_paths.is_module(value) and type(value).__qualname__ == klass:
            said = (key for key, held in instance_dict(value).items() if says(held, case.expected_device))
            attribute = next((f"self.{key}" for key in said if str(key).isidentifier()), "")
            return attribute or _of_its_parameters(case, value)
    return ""


def _of_its_parameters(case: Case, module: object) -> str:
    first = next((tensor for _, tensor in registered(module) if access_paths.is_parameter(tensor)), None)
    at_home = first is not None and case.snapshot.device_of(first) == case.expected_device
    return "next(self.parameters()).device" if at_home else ""


def move_in_theirs(case: Case, verdict: Verdict) -> Fix | None:
    """In a package's code: the line that makes it should end in `.to(self.device)`."""
    queries = case.queries
    for site in dict.fromkeys((verdict.born, *(queries.born(row) for row in case.origin.path))):
        place, package = queries.source_node(site), queries.package(site)
        device = _device_at(case, site, place.node) if place is not None and package else ""
        if device:
            return Fix(f"in {package}, {queries.site(site)}: move what it makes with .to({device}); {OTHERS}")
    return None


def _told(code: Code, call: ast.Call, device: str) -> str:
    """A factory's call with a device."""
    body = code.text(call)[:-1].rstrip().removesuffix(",")
    return f"{body}{', ' if call.args or call.keywords else ''}device={device})"


def _untold(place: SourceNode, call: ast.Call) -> list[ast.Call]:
    """A factory's call, and the others of its statement that are told no device either."""
    found = [call]
    for node in ast.walk(place.statement):
        if isinstance(node, ast.Call) and node is not call and origins.is_factory_without_device(node):
            inside = any(node in ast.walk(other) or other in ast.walk(node) for other in found)
            found += [] if inside else [node]
    return found


def cast_where_bound(case: Case, verdict: Verdict) -> Fix | None:
    """`kernel = tapered(size).to(signal.device)`: where the value comes into the frame that uses it."""
    for name in reversed(case.names):
        stand = FailingFrame.of(case.snapshot, name.frame, case.expected_device) if len(name.holds) == 1 else None
        bound = [one for one in stand.bindings(name.text) if one is not stand.place.statement][-1:] if stand else []
        if stand is None or not bound or not isinstance(bound[0], ast.Assign) or not _plain(bound[0]):
            continue
        value = bound[0].value
        device = stand.device(stand.code.source.span(bound[0]).line, value)
        if device:
            new = stand.code.moved_to(value, device)
            return made(f"move it where it is made: {name.text} = {one_line(new)}", stand.code.replaced(value, new))
    return None


def _plain(statement: ast.Assign) -> bool:
    return len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name)


def ask_for_home(case: Case, verdict: Verdict) -> Fix | None:
    """`.to(first)`, `.cuda()` or `.cpu()` that makes the tensor what it is becomes `.to(second)`."""
    if verdict.sent_by is None or verdict.module is not None:
        return None
    found, stand = code_at(case, verdict.sent_by.site), standing(case, verdict.sent_by.site)
    if found is None or stand is None or not isinstance(found[1].node, ast.Call):
        return None
    code, place = found
    call = found[1].node
    outermost = place.statement.value if isinstance(place.statement, ast.Assign | ast.Return) else None
    if outermost is not call or not isinstance(call.func, ast.Attribute) or call.func.attr not in ("to", "cuda", "cpu"):
        return None
    line = code.source.span(call).line
    device = stand.device(line, call) if _is_inner(stand) else stand.set_up_device(line)
    if not device:
        return None
    new = f"{code.text(call.func.value)}.to({device})"
    return made(f"put it where it is needed: {one_line(new)}", code.replaced(call, new))


def _is_inner(stand: FailingFrame) -> bool:
    return access_paths.is_module(stand.held.get("self"))


def at_the_use(case: Case, verdict: Verdict) -> Fix | None:
    """`deep + stem.to(deep.device)`."""
    stand = FailingFrame.of(case.snapshot, 0, case.expected_device)
    if stand is None or _written(case, stand):
        return None
    node = stand.node_of(case.odd_tensor)
    device = stand.home_beside(node) if node is not None else ""
    if node is None or not device:
        return None
    new = stand.code.moved_to(node, device)
    again = [other for other in stand.loads(node) if other is not node]
    if again and isinstance(node, ast.Name):
        line = f"{node.id} = {new}"
        return made(f"move it before it is used: {line}", stand.code.above(stand.place.statement, line))
    return made(f"move it where it is used: {one_line(new)}", stand.code.replaced(node, new))


def _written(case: Case, stand: FailingFrame) -> bool:
    """Whether the failing op writes into the odd one: a moved copy of it would be written in vain."""
    op = case.queries.op_name(case.op).removeprefix("aten.").partition(".")[0]
    inputs = case.queries.inputs(case.op)
    return op.endswith("_") and not op.endswith("__") and bool(inputs) and inputs[0] == case.odd_tensor
