"""Moves a part of a module or an object where it was attached: `model.head = head`, `register_buffer`, `self.x = x`."""

import ast
from collections.abc import Iterator

from devtrace.diagnosis.evidence.access_paths import NO_PATH, AccessPath
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.mismatch_case import MismatchCase, Verdict
from devtrace.diagnosis.evidence.source_text import only_assignment
from devtrace.diagnosis.evidence.trace_queries import NOWHERE, SourceNode
from devtrace.diagnosis.findings import Site
from devtrace.diagnosis.fixes import devices
from devtrace.diagnosis.fixes.changes import Anchor, OwnLines, Proposal, Within, statements_above, that_ran
from devtrace.diagnosis.fixes.fix import Fix, frame_at, names_device, odd_rows
from devtrace.source import kinds
from devtrace.source.defuse import path_of, targets
from devtrace.source.matching import assigned_names, called_names, calls_in, match_code, names_in, same_code, variable
from devtrace.source.object_walk import is_tensor, members


def move_below_attachment(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Below `model.head = nn.Linear(8, 2)` add `model.to(device)`, in the frame that holds the model, not its own."""
    frame, born, module = case.frame_of(verdict.name), case.queries.site(verdict.born), verdict.module
    if not frame.is_there or born is None or verdict.move is None or module.code in ("", frame.own):
        return
    was_replaced = case.ownership is not None and case.ownership.was_replaced
    found = case.queries.own_node(verdict.born) if was_replaced else NOWHERE
    kept = targets(found.statement)  # by another object first: `self.shadow = {...}`
    attaching = not any("." in path_of(each.node) for each in kept)
    statement = _assigning(case, verdict, frame) or (_attaching(case, verdict, frame, born) if attaching else None)
    if statement is not None:
        anchor = Anchor(frame.code, statement, "below", frame)
        yield from Proposal(anchor, OwnLines.of(module)).fixes("fixed.attached", anchor.moved(case, module))


def _assigning(case: MismatchCase, verdict: Verdict, frame: FailingFrame) -> ast.stmt | None:
    """Return the last `model.bank = ...`, if the odd tensor is in `model.bank` or beside it."""
    parts = list(verdict.name.parts(len(verdict.module.references) + 1))
    beside = ((part, other) for part in parts for other in members(part.last.owner))
    paths = {part.code for part in parts}
    paths |= {part.beside(other).code for part, other in beside if odd_rows(case, other.value)}
    given = ((each, target) for each in statements_above(frame) for target in getattr(each, "targets", ()))
    return next((statement for statement, target in given if frame.code.text(target) in paths), None)


def _attaching(case: MismatchCase, verdict: Verdict, frame: FailingFrame, born: Site) -> ast.stmt | None:
    """Return the statement that made a part, or the next that hands it to the model; else one that gets the model."""
    model, span, above = verdict.name.references[0].text, frame.source.span, list(statements_above(frame))
    made = next(that_ran(frame, born), None)
    if made is not None:
        names = set(assigned_names(made)) if model not in names_in(made) else set()
        below = [each for each in above if span(each).line > span(made).end_line and model in names_in(each)]
        return next((each for each in reversed(below) if names & names_in(each)), made)
    moved = case.queries.site(verdict.moved)
    first = moved.line if moved is not None and moved.file == frame.code.site.file else 0
    getting = (each for each in above if span(each).line > first and model in names_in(each))
    return next((each for each in getting if any(variable(call.func) for call in calls_in(each))), None)


def move_as_attached(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Write `owner.head = nn.Linear(...).to(device)`, where a function that may have returned attached it."""
    is_made = verdict.kind == "created-without-device"  # perhaps by a line above
    born, name = case.born if is_made else verdict.born, verdict.name
    found = case.queries.own_node(born)
    if name is NO_PATH or getattr(found.function, "name", "") == "__init__":
        return
    code = found.statement
    given = match_code("$owner.$part = $value", code) or match_code("$owner[$part] = $value", code)
    if given is None or (verdict.kind == "never-moved" and name.last.kind not in ("parameter", "buffer")):
        return
    value, target = given["value"], found.code.text(next(targets(found.statement)).node)
    is_inner = name.last.kind == "parameter" and len(name.references) >= 2 and "Parameter" in called_names(value)
    if is_inner and isinstance(value, ast.Call) and value.args:
        value = value.args[0]  # of `nn.Parameter(x)`, the call alone or within other calls
    is_inner = value is not given["value"]
    anchor, here = Anchor(found.code, value, "at", frame_at(case, born)), devices.at(case, born, value)
    owner = devices.of_owner(case, given["owner"], found.code) if not is_made else ""
    if given["part"] == "data":  # of `layer.weight.data = x` the owner is a tensor
        owner = f"{found.code.text(given['owner'])}.{case.queries.by.name}"
    own = [owner, here] if is_inner else [here, owner]
    device = next(filter(None, [devices.of_earlier_cell(case, verdict, found), *own]), "")
    proposal = Proposal(anchor, Within((value,)), device, given="" if is_inner else f"{target} = ")
    key = "fixed.on-models-device" if is_inner else "fixed.as-attached"
    parts = (_part_attached(name, target.rpartition(".")[2]) or name for name in case.names)
    yield from proposal.fixes(key, anchor.moved(case, *parts))


def move_where_it_is_built(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Below `self._build(x.shape[-1])`, which made a layer in a call, add `self.layer.to(x.device)`."""
    found = case.queries.own_node(verdict.born)
    made = match_code("$self.$name = $value", found.statement)
    if made is None:
        return
    for name in case.names:
        frame, layer = case.frame_of(name), _part_attached(name, str(made["name"]))
        call = next(that_ran(frame, found.code.site), None)
        if call is not None and layer is not None and kinds.is_module(layer.last.value):
            anchor = Anchor(frame.code, call, "below", frame)
            proposal = Proposal(anchor, OwnLines.of(layer), frame.device_code(anchor.line + 1, call))
            yield from proposal.fixes("fixed.below-line", anchor.moved(case, layer))


def _part_attached(name: AccessPath, step: str) -> AccessPath | None:
    return next((part for part in name.parts() if part.texts[-1].lstrip(".") == step), None)


def move_as_sibling(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Beside `self.x = nn.Embedding(n, 1).to(device)` write `self.y = nn.Embedding(n, 1).to(device)`."""
    for part in verdict.name.parts(2):
        owner, key = part.last.owner, part.last.key
        can_be_moved = isinstance(key, str) and (kinds.is_module(part.last.value) or is_tensor(part.last.value))
        given = only_assignment(case.queries, owner, key) if can_be_moved else NOWHERE
        made = match_code("$self.$name = $value", given.statement)
        sibling = _moved_beside(given, made["self"]) if made is not None else None
        if made is None or sibling is None or names_device(made["value"]):
            continue
        code, anchor = given.code, Anchor(given.code, made["value"], "at")
        target, other = f"{code.text(made['self'])}.{key} = ", f"{code.text(sibling['self'])}.{sibling['name']}"
        proposal = Proposal(anchor, Within((made["value"],)), code.text(sibling["device"]), given=target)
        yield from proposal.fixes("fixed.as-sibling", anchor.moved(case, part), sibling=other)


def _moved_beside(given: SourceNode, owner: ast.expr) -> dict[str, ast.expr] | None:
    """Return the parts of the nearest `self.other = value.to(device)` of the same block."""
    line, block = given.statement.lineno, getattr(given.source.parent(given.statement), "body", ())
    for each in sorted(block, key=lambda other: abs(other.lineno - line)):
        found = match_code("$self.$name = $value.to($device)", each) if each is not given.statement else None
        if found and same_code(found["self"], owner) and isinstance(found["device"], ast.Name | ast.Attribute):
            return found
    return None
