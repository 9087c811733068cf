"""What is asked of an edit that nobody has run: it can be typed where it is, and the failing op runs with it.

    each name in it has a value at its line             source/defuse.py
    what it moves was there when its line ran           `Moved.since`, and the tensor's birth
    nothing below writes into what it replaces          a copy would change, and not what is kept
    it does not replace what an optimizer trains        a leaf that requires a gradient stays a leaf
    every input of the failing op is then together      replay.py

No code of the program runs for this. Whether an edit holds in the next round of a loop is for a run of the program to
say (`fixing/rounds.py`).
"""

import ast
from collections.abc import Container, Iterable
from typing import Any

from devtrace.diagnosis.edits import Edited
from devtrace.diagnosis.evidence.execution_order import led_to, run_by
from devtrace.diagnosis.evidence.failing_moment import FailingMoment
from devtrace.diagnosis.evidence.mismatch_case import MismatchCase
from devtrace.diagnosis.evidence.moves import crossed
from devtrace.diagnosis.evidence.source_text import assignments
from devtrace.diagnosis.findings import Edit
from devtrace.diagnosis.fixes.fix import Fix, Moved
from devtrace.source import kinds
from devtrace.source.defuse import bindings, gone_through, is_bound, is_written, statements, values_given
from devtrace.source.matching import called_name, chain, is_given, is_read, is_step, match_code, only, variable
from devtrace.source.object_walk import items_of, registered
from devtrace.source.parsing import NO_SOURCE, Source, Span, parameters
from devtrace.source.safe_values import MISSING, Scope, evaluate
from devtrace.source.vocabulary import is_move
from devtrace.trace.ids import OpId


def refusal(case: MismatchCase, fix: Fix) -> str:
    """Return why an edit of a fix cannot stand at its line, whatever the other fixes do; empty if all can."""
    if any(case.queries.producer(case.queries.base(moved.row)) > moved.since for moved in fix.moved):
        return "what it moves is made later"
    since = max((moved.since for moved in fix.moved), default=case.op)
    return next(filter(None, (unwritable(case.moment, edit, since) for edit in fix.edits)), "")


def unwritable(moment: FailingMoment, edit: Edit, since: OpId) -> str:
    """Return why the lines of an edit, which run before an op, cannot stand where they are; empty if they can."""
    cells = [block.cell_id for block in moment.queries.trace.sources if block.file == edit.file]
    source = moment.queries.read(edit.file, max(edit.line, 1), cells[0] if cells else "")
    edited = Edited.of(source, edit) if source is not NO_SOURCE else None
    if edited is None:
        return "the source cannot be read"
    old_paths = _paths_in(source, edited.first, edited.first + edit.before.count("\n")) if edit.before else []
    old = {ast.unparse(path) for path in old_paths}
    paths = _paths_in(edited.source, edited.first, edited.last) if edit.after else []
    running, namespace = _variables(moment, edited)
    if not all(_has_value(path, edited.source, running, namespace) for path in paths if ast.unparse(path) not in old):
        return "a name has no value at its line"
    scope = Scope(running, namespace)
    if any(_is_set_later(moment, edited, path, scope) for path in paths):
        return "an attribute has no value at its line"
    matches = filter(None, (match_code("next($x.parameters()).$device", path) for path in paths))
    modules = [evaluate(match["x"], scope) for match in matches]
    if any(_is_moved_later(moment, module, since) for module in modules):
        return "the device that it reads is another one yet"
    moves = moment.queries.move_methods
    targets = [line.targets[0] for line in only(ast.Assign, edited.statements()) if _is_moved(line.value, moves)]
    if any(kinds.is_frozen(evaluate(target.value, scope)) for target in targets if is_step(target)):
        return "nobody can assign to it"
    replaced = [evaluate(target, scope) for target in targets]
    if any(kinds.is_trained_leaf(leaf) for value in replaced for leaf in (value, *items_of(value))):
        return "an optimizer would refuse the moved copy of a leaf that it trains"
    if not edit.before and any(_is_set_below(target, edited.source) for target in targets):
        return "a later line sets it anew"
    return "a line below changes the moved copy, and not what is kept" if _changes_a_copy(edited) else ""


def _is_moved(code: ast.expr, moves: Container[str]) -> bool:
    """Return whether code is `x.to(device)` or `[each.to(device) for each in xs]`."""
    match code:
        case ast.ListComp(elt=element) | ast.DictComp(value=element):
            return _is_moved(element, moves)
    holes = match_code("$x.$move(...)", code)
    return holes is not None and holes["move"] in moves


def _is_moved_later(moment: FailingMoment, module: Any, since: OpId) -> bool:
    """Return whether a module came to where it is now by a move at an op or after it."""
    queries, tensors = moment.queries, registered(module) if kinds.is_module(module) else ()
    rows = (row for _, tensor in tensors if (row := moment.row(tensor)) is not None)
    return any(crossed(queries, row) and queries.producer(row) >= since for row in rows)


def _paths_in(source: Source, first: int, last: int) -> list[ast.expr]:
    """Return the names and the attributes that lines read, each as its whole chain: `self.net.w`."""
    nodes = (node for node in source.beginning(ast.expr, first, last) if isinstance(node, ast.Name | ast.Attribute))
    return [node for node in nodes if is_read(node) and not isinstance(source.parent(node), ast.Attribute)]


def _variables(moment: FailingMoment, edited: Edited) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the variables of the frame that runs the edited function, and the names of its module."""
    new_source, namespace = edited.source, dict[str, Any]()
    function = new_source.function(new_source.node_at(Span(edited.first, -1, -1, -1)))
    for frame in moment.frames:
        if frame.f_code.co_filename == new_source.file:
            namespace = namespace or dict(frame.f_globals)
            is_whole = frame.f_code.co_name == "<module>"
            if new_source.function_of_code(frame.f_code) is function and is_whole == (function is None):
                return dict(frame.f_locals), dict(frame.f_globals)
    return {}, namespace or dict(moment.queries.snapshot.objects.modules.get(new_source.file) or moment.namespace)


def _has_value(path: ast.expr, source: Source, running: dict[str, Any], namespace: dict[str, Any]) -> bool:
    *inner, root = chain(path)
    if not (name := variable(root)) or any(map(called_name, inner)):
        return True  # an attribute of what a call returns
    is_of_element = any(gone_through(source, root, name, ast.comprehension))
    return is_of_element or is_bound(name, source, root, running, namespace)


def _is_set_later(moment: FailingMoment, edited: Edited, path: ast.expr, scope: Scope) -> bool:
    """Return whether a path reads an attribute that only a later call sets: `scaler.mean`, before `scaler.fit()`.

    scaler = Scaler(rows)               # `self.mean = None`: below it `scaler.mean` is no tensor yet
    scaler.fit()
    """
    source, called_above = edited.source, set[str]()
    for statement in statements(source.function(path) or source.tree):
        called_above |= run_by(statement, scope) if source.span(statement).line < edited.first else set()
    for step in only(ast.Attribute, chain(path)):
        owner = evaluate(step.value, scope)
        assigned = assignments(moment.queries, owner, step.attr, to_read=True) if owner is not MISSING else ()
        values = [value for value in assigned if match_code("None", value.node) is None]
        setters = {getattr(value.function, "name", "") for value in values}
        reached = led_to(called_above, [source, *(value.source for value in values)])
        if setters and "__init__" not in setters and type(owner).__name__ in reached and reached.isdisjoint(setters):
            return True
    return False


def _is_set_below(target: ast.expr, source: Source) -> bool:
    """Return whether a later line of the function assigns the same attribute or item, other than by `+=`."""
    body, line = source.function(target) or source.tree, source.span(target).end_line
    below = (node for node in ast.walk(body) if is_step(node) and is_given(node) and source.span(node).line > line)
    set_anew = (node for node in below if not isinstance(source.parent(node), ast.AugAssign))
    return is_step(target) and any(ast.unparse(node) == ast.unparse(target) for node in set_anew)


def _changes_a_copy(edited: Edited) -> bool:
    """Return whether a later line changes in place what an edit moves, while the original is kept elsewhere.

    avg = state["avg"]                      # an edit below: avg = avg.to(grad.device)
    avg.mul_(0.9).add_(grad)                # what the state keeps is not what changes
    """
    source = edited.source
    for statement in edited.statements():
        body = source.function(statement) or source.tree
        below = [line for line in statements(body) if source.span(line).line > edited.last]
        for name, value in values_given(source, statement).items():
            match = match_code("$x.$move(...)", value)
            is_kept = match is not None and is_move(match["move"]) and _is_kept(source, body, match["x"], name)
            if is_kept and any(is_written(node, name) for line in below for node in ast.walk(line)):
                return True
    return False


def _is_kept(source: Source, body: ast.AST, moved: ast.expr, name: str) -> bool:
    """Return whether the value that `name = moved.to(d)` moves is also an item, an attribute or the caller's."""
    if variable(moved) != name:
        return is_step(moved)
    line = source.span(moved).line
    above = [binding for binding in bindings(source, body, name) if binding.line < line]
    if above:
        return above[-1].loops or is_step(above[-1].own)
    return name in parameters(body)


def all_moved(fixes: Iterable[Fix]) -> tuple[Moved, ...]:
    return tuple(dict.fromkeys(moved for fix in fixes for moved in fix.moved))
