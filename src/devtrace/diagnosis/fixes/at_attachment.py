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
from devtrace.diagnosis.fixes.changes import Anchor, OwnLines, Proposal, Within, lines_that_ran, statements_above
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
    birth = case.queries.own_node(verdict.born) if was_replaced else NOWHERE
    # A tensor that replaced another may have been an attribute of another object first: `self.shadow = {...}`.
    may_attach = not any("." in path_of(target.node) for target in targets(birth.statement))
    statement = _assignment(case, verdict, frame) or (_attachment(case, verdict, frame, born) if may_attach else None)
    if statement is not None:
        anchor = Anchor(frame.code, statement, "below", frame)
        yield from Proposal(anchor, OwnLines.of(module)).fixes("fixed.attached", anchor.moved(case, module))


def _assignment(case: MismatchCase, verdict: Verdict, frame: FailingFrame) -> ast.stmt | None:
    """Return the last `model.bank = ...`, if the odd tensor is `model.bank`, in it, or beside it."""
    parts = list(verdict.name.parts(len(verdict.module.references) + 1))
    beside = ((part, reference) for part in parts for reference in members(part.last.owner))
    paths = {part.code for part in parts}
    paths |= {part.beside(reference).code for part, reference in beside if odd_rows(case, reference.value)}
    pairs = ((line, target) for line in statements_above(frame) for target in getattr(line, "targets", ()))
    return next((line for line, target in pairs if frame.code.text(target) in paths), None)


def _attachment(case: MismatchCase, verdict: Verdict, frame: FailingFrame, born: Site) -> ast.stmt | None:
    """Return `model.add(head)` below `head = build()`, else `head = build()` itself; else a call: `grow(model)`."""
    model, span, above = verdict.name.references[0].text, frame.source.span, list(statements_above(frame))
    creation = next(lines_that_ran(frame, born), None)
    if creation is not None:
        part_names = set(assigned_names(creation)) if model not in names_in(creation) else set()
        below = [line for line in above if span(line).line > span(creation).end_line and model in names_in(line)]
        return next((line for line in reversed(below) if part_names & names_in(line)), creation)
    move = case.queries.site(verdict.moved)
    move_line = move.line if move is not None and move.file == frame.code.site.file else 0
    after_move = (line for line in above if span(line).line > move_line and model in names_in(line))
    return next((line for line in after_move if any(variable(call.func) for call in calls_in(line))), None)


def move_as_attached(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Write `owner.head = nn.Linear(...).to(device)`, where a function that may have returned attached it."""
    is_of_a_factory = verdict.kind == "created-without-device"  # perhaps by a line above
    born, name = case.born if is_of_a_factory else verdict.born, verdict.name
    birth = case.queries.own_node(born)
    if name is NO_PATH or getattr(birth.function, "name", "") == "__init__":
        return
    statement, code = birth.statement, birth.code
    match = match_code("$owner.$part = $value", statement) or match_code("$owner[$part] = $value", statement)
    if match is None or (verdict.kind == "never-moved" and name.last.kind not in ("parameter", "buffer")):
        return
    value, target = match["value"], code.text(next(targets(statement)).node)
    is_wrapped = name.last.kind == "parameter" and len(name.references) >= 2 and "Parameter" in called_names(value)
    if is_wrapped and isinstance(value, ast.Call) and value.args:
        value = value.args[0]  # of `nn.Parameter(x)`, the call alone or within other calls
    is_inner = value is not match["value"]
    anchor, device_here = Anchor(code, value, "at", frame_at(case, born)), devices.at(case, born, value)
    owner_device = devices.of_owner(case, match["owner"], code) if not is_of_a_factory else ""
    if match["part"] == "data":  # of `layer.weight.data = x` the owner is a tensor
        owner_device = f"{code.text(match['owner'])}.{case.queries.by.name}"
    in_order = [owner_device, device_here] if is_inner else [device_here, owner_device]
    device = next(filter(None, [devices.of_earlier_cell(case, verdict, birth), *in_order]), "")
    proposal = Proposal(anchor, Within((value,)), device, target="" if is_inner else f"{target} = ")
    key = "fixed.on-models-device" if is_inner else "fixed.as-attached"
    parts = (_prefix_ending_in(path, target.rpartition(".")[2]) or path for path in case.names)
    yield from proposal.fixes(key, anchor.moved(case, *parts))


def move_where_it_is_built(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Below `self._build(x.shape[-1])`, which made a layer in a call, add `self.layer.to(x.device)`."""
    birth = case.queries.own_node(verdict.born)
    match = match_code("$self.$name = $value", birth.statement)
    if match is None:
        return
    for name in case.names:
        frame, layer = case.frame_of(name), _prefix_ending_in(name, str(match["name"]))
        call = next(lines_that_ran(frame, birth.code.site), None)
        if call is not None and layer is not None and kinds.is_module(layer.last.value):
            anchor = Anchor(frame.code, call, "below", frame)
            proposal = Proposal(anchor, OwnLines.of(layer), frame.device_code(anchor.line + 1, call))
            yield from proposal.fixes("fixed.below-line", anchor.moved(case, layer))


def _prefix_ending_in(name: AccessPath, last_step: str) -> AccessPath | None:
    return next((part for part in name.parts() if part.texts[-1].lstrip(".") == last_step), None)


def move_as_sibling(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Beside `self.x = nn.Embedding(n, 1).to(device)` write `self.y = nn.Embedding(n, 1).to(device)`."""
    for part in verdict.name.parts(2):
        owner, key = part.last.owner, part.last.key
        can_be_moved = isinstance(key, str) and (kinds.is_module(part.last.value) or is_tensor(part.last.value))
        assignment = only_assignment(case.queries, owner, key) if can_be_moved else NOWHERE
        match = match_code("$self.$name = $value", assignment.statement)
        sibling = _nearest_moved_sibling(assignment, match["self"]) if match is not None else None
        if match is None or sibling is None or names_device(match["value"]):
            continue
        code, anchor = assignment.code, Anchor(assignment.code, match["value"], "at")
        target, path = f"{code.text(match['self'])}.{key} = ", f"{code.text(sibling['self'])}.{sibling['name']}"
        proposal = Proposal(anchor, Within((match["value"],)), code.text(sibling["device"]), target=target)
        yield from proposal.fixes("fixed.as-sibling", anchor.moved(case, part), sibling=path)


def _nearest_moved_sibling(assignment: SourceNode, owner: ast.expr) -> dict[str, ast.expr] | None:
    """Return the parts of the nearest `self.other = value.to(device)` of the same block."""
    own, block = assignment.statement, getattr(assignment.source.parent(assignment.statement), "body", ())
    for statement in sorted(block, key=lambda other: abs(other.lineno - own.lineno)):
        match = match_code("$self.$name = $value.to($device)", statement) if statement is not own else None
        if match and same_code(match["self"], owner) and isinstance(match["device"], ast.Name | ast.Attribute):
            return match
    return None
