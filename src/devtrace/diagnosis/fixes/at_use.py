"""Moves a tensor where the failing line uses it: in that line, or in a line above."""

import ast
import itertools
from collections.abc import Iterator

from devtrace.diagnosis.evidence import origins
from devtrace.diagnosis.evidence.access_paths import AccessPath
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.mismatch import written_into
from devtrace.diagnosis.evidence.mismatch_case import MismatchCase, Verdict
from devtrace.diagnosis.evidence.trace_queries import HOST
from devtrace.diagnosis.findings import Site
from devtrace.diagnosis.fixes.changes import Anchor, EachOf, OwnLines, Proposal, Within
from devtrace.diagnosis.fixes.fix import (
    Fix,
    Moved,
    failing_frame,
    is_assignable,
    odd_expression,
    odd_rows,
    registering_root,
    siblings_of_odd_trait,
)
from devtrace.diagnosis.fixes.replay import is_combined
from devtrace.source.defuse import COMPREHENSIONS, is_written
from devtrace.source.matching import calls_in, is_step, match_code, nodes_of, same_code, variable
from devtrace.source.multi_value_expr import code_run_by, returned_by
from devtrace.source.object_walk import is_tensor, items_of
from devtrace.source.safe_values import evaluate, values


def move_at_use(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Turn `deep + stem` into `deep + stem.to(deep.device)`; above the line, if the function reads it again."""
    is_written_into = written_into(case.queries, case.op) == case.odd_tensor  # a move would lose what is written
    is_of_a_module = case.queries.by.goes_through_modules(case.odd_trait) and case.moment.is_registered(case.odd_tensor)
    if not is_written_into and not is_of_a_module and not _takes_the_work_away(case):
        for frame, node in odd_expression(case):
            if not _writes_an_item_of(frame.source_node.statement, node):
                yield from _moves_at_use(case, frame, node)


def _moves_at_use(case: MismatchCase, frame: FailingFrame, node: ast.expr) -> Iterator[Fix]:
    """Above `y = x + z; w = x` write `x = x.to(d)`, as `x` is read again; or change the line's own reads of it."""
    device = _device_of_another_item(case, frame, node) or frame.device_of_other_operand(node)
    other_loads = [other for other in frame.loads(node) if other is not node]
    if other_loads and variable(node):
        anchor = _above_line(frame)
        line_above = Proposal(anchor, OwnLines((variable(node),)), device)
        yield from line_above.fixes("fixed.before-use", anchor.moved_rows(case, [case.odd_tensor]))
    inside = list(ast.walk(frame.source_node.statement))
    beside = (load for load in other_loads if load in inside and is_combined(load, frame.source, frame.function))
    nodes = (node, *beside, *_similar_calls(frame, node))
    in_line = Proposal(Anchor(frame.code, node, "at", frame), Within(nodes), device)
    yield from in_line.fixes("fixed.at-use", [Moved(case.odd_tensor, case.op)])


def _device_of_another_item(case: MismatchCase, frame: FailingFrame, node: ast.expr) -> str:
    """Return `group[0].device` for `p.grad` of `[p.grad for p in group]`: of the first item that is as expected.

    If code computes with the item, as `net.w.pow(2)`, of the first tensor or module that the item leads to.
    """
    outer = frame.source.parent(node)
    if not isinstance(outer, COMPREHENSIONS) or node not in vars(outer).values() or len(outer.generators) > 1:
        return ""
    name, iterated, scope = variable(outer.generators[0].target), outer.generators[0].iter, frame.scope()
    items = evaluate(iterated, scope)
    for index, item in enumerate(items if name and type(items) in (list, tuple) else ()):
        for path in values(node, frame.source, scope.having({name: item})):
            uses = [use for use in nodes_of(ast.Name, path.node) if use.id == name]
            item_code = f"{frame.code.text(iterated)}[{index}]"
            device = frame.device_of(frame.code.text_with(path.node, *((use, item_code) for use in uses)), path.value)
            if uses and device:
                return device
    return ""


def _above_line(frame: FailingFrame) -> Anchor:
    return Anchor(frame.code, frame.source_node.statement, "above", frame)


def _similar_calls(frame: FailingFrame, node: ast.expr) -> Iterator[ast.Call]:
    """Yield the second call of `loss(fake_labels(n), fake_labels(m))` for the first: both make a new tensor."""
    if isinstance(node, ast.Call) and _returns_a_new_tensor(node, frame):
        for other in calls_in(frame.expression):
            if other is not node and _returns_a_new_tensor(other, frame) and is_combined(other, frame.source):
                yield other


def _returns_a_new_tensor(call: ast.Call, frame: FailingFrame) -> bool:
    code, by = code_run_by(call.func, frame.scope()), frame.moment.queries.by
    returned = list(returned_by(code)) if code is not None else []
    are_new = (any(origins.is_factory_without(by, x, source) for x in calls_in(value)) for source, value in returned)
    return bool(returned) and all(are_new)  # by a factory's call without a device


def _takes_the_work_away(case: MismatchCase) -> bool:
    """Return whether the edit would bring the last tensor from the accelerator to an unintended CPU."""
    says_cpu, frame = case.mismatch.words, failing_frame(case)
    return case.expected_trait == HOST and (says_cpu is None or says_cpu.file != frame.code.site.file)


def _writes_an_item_of(statement: ast.stmt, node: ast.expr) -> bool:
    """Return whether a statement writes into an item of what a node reads: `counts` of `counts[labels] += 1`."""
    targets = getattr(statement, "targets", [getattr(statement, "target", None)])
    items = (match_code("$owner[$index]", target) for target in targets)
    return any(item is not None and same_code(item["owner"], node) for item in items)


def move_before_update(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Above `self.sum += x` write `self.sum = self.sum.to(x.device)`, and so its siblings: it does nothing later on."""
    for frame, node in odd_expression(case):
        if not is_step(node):
            continue
        is_one = isinstance(getattr(node, "slice", None), ast.Constant | None)  # `means[name]` is many, one a round
        names = [name for name in case.names if name.frame == 0 and is_one][:1]
        siblings = (path for name in names if len(name.references) > 1 for path in siblings_of_odd_trait(case, name))
        paths = dict.fromkeys([frame.code.text(node), *filter(None, (path.code for path in siblings))])
        proposal = Proposal(_above_line(frame), OwnLines(tuple(paths)), frame.device_of_other_operand(node))
        is_updated = any(is_written(code, ast.unparse(node)) for code in ast.walk(frame.body))
        key = "fixed.before-update" if is_updated else "fixed.before-use"
        yield from proposal.fixes(key, [Moved(case.odd_tensor, case.op)])


def move_each_before_use(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Above `torch.stack(outs)` write `outs = [each.to(outs[0].device) for each in outs]`: some of it is elsewhere."""
    frame = failing_frame(case)
    if _takes_the_work_away(case):
        return
    for path in values(frame.source_node.node, frame.source, frame.scope()):
        if not variable(path.node) or not case.moment.is_in(path.value, case.odd_tensor):
            continue
        items = items_of(path.value)
        devices = (frame.device_of(f"{path.text}[{index}]", item) for index, item in enumerate(items))
        proposal = Proposal(_above_line(frame), EachOf(path.text, path.value), next(filter(None, devices), ""))
        moved = _above_line(frame).moved_rows(case, [row for item in items for row in odd_rows(case, item)])
        yield from proposal.fixes("fixed.before-use", moved)


def move_above_in_cell(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Above the failing statement of a cell write `model.to(device)`, where another cell made the model.

    That cell may come before the one that has the device.
    """
    for name, place, site in _made_by_other_cells(case):
        if (root := registering_root(case, name)) is not None:
            yield from Proposal(place, OwnLines.of(root)).fixes("fixed.above-line", place.moved(case, root), site=site)


def move_kept_above_in_cell(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Write `net.hidden = [each.to(device) for each in net.hidden]` likewise for what no module registers."""
    for name, place, site in _made_by_other_cells(case):
        rows = [*odd_rows(case, name.last.value), *case.mismatch.others_of_odd_trait]
        for part in filter(is_assignable, name.parts(2) if registering_root(case, name) is None else ()):
            value, names = part.last.value, [part, *siblings_of_odd_trait(case, part)]
            change = OwnLines.of(*names) if is_tensor(value) else EachOf(part.code, value)
            yield from Proposal(place, change).fixes("fixed.above-line", place.moved_rows(case, rows), site=site)


def _made_by_other_cells(case: MismatchCase) -> Iterator[tuple[AccessPath, Anchor, Site]]:
    """Yield the names whose object another cell made, with a place above a cell's failing statement, and its site."""
    frames = FailingFrame.all_of(case.moment, case.expected_trait)
    frames_of_cells = [frame for frame in frames if frame.function is None and frame.code.site.cell is not None]
    for name, frame in itertools.product(case.names, frames_of_cells):
        if frame.variables.get(name.texts[0]) is name.objects[0] and not frame.bindings(name.texts[0]):
            statement = frame.source.outermost(frame.source_node.statement)
            yield name, Anchor(frame.code, statement, "above", frame), frame.code.site_of(statement)
