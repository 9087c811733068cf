"""Adds a missing move beside an existing one: in a line below it, or in the same expression."""

import ast
from collections.abc import Iterator
from typing import Any

from devtrace.diagnosis.evidence.access_paths import NO_PATH, AccessPath
from devtrace.diagnosis.evidence.mismatch_case import MismatchCase, Verdict
from devtrace.diagnosis.evidence.moves import Move, move_of
from devtrace.diagnosis.evidence.origins import find_origin
from devtrace.diagnosis.evidence.source_text import assignments
from devtrace.diagnosis.evidence.trace_queries import HOST, NOWHERE, SourceNode
from devtrace.diagnosis.fixes.changes import Anchor, EachOf, OwnLines, Proposal, Within, lines_that_ran, rewritten
from devtrace.diagnosis.fixes.fix import Fix, Moved, frame_at, is_assignable, names_device, registering_root, suggested
from devtrace.diagnosis.fixes.register_on_module import unregistered_step
from devtrace.source import kinds
from devtrace.source.defuse import targets
from devtrace.source.matching import called_name, is_literal, keyword, match_code, nodes_of, owner_of, star_at, variable
from devtrace.source.object_walk import groups_of, is_tensor, items_of, members, states_of
from devtrace.source.parsing import parameters
from devtrace.source.safe_values import MISSING, attribute, constructor_fields, evaluate
from devtrace.source.vocabulary import REPLACES
from devtrace.trace.ids import OpId, TensorId
from devtrace.words.catalogue import sentence

Group = dict[Any, Any]
"""Values that were passed on together, in order: by index, by key, or by name of a variable, field or parameter."""


def move_beside_neighbour(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Below `x = x.to(device)` repeat it: `y = y.to(device)`; in a method, below `self.x = self.x.to(device)`."""
    name, move_call, frame = verdict.name, case.queries.own_node(verdict.moved), case.frame_of(verdict.name)
    row, code = case.moment.row(name.last.value), move_call.code.method_call(move_call.node)
    if not frame.is_there or row is None or verdict.move is None or not is_assignable(name):
        return
    names_another_device = case.queries.by.excludes(move_call.node, frame.scope(), case.expected_trait)
    if not isinstance(move_call.statement, ast.Assign) or not code or names_another_device:
        return
    if move_call.function is not frame.function:
        anchor, path = Anchor(move_call.code, move_call.statement, "below"), _path_in_method(case, name, move_call)
        moved = [Moved(row, OpId(verdict.move.op + 1))]
    else:
        is_held_too = name.last.owner is None and any(other.last.owner is not None for other in case.names)
        anchor, path = Anchor(move_call.code, move_call.statement, "below", frame), "" if is_held_too else name.code
        moved = list(anchor.moved(case, name))
    yield from Proposal(anchor, OwnLines((path,) if path else ()), call=code).fixes("fixed.beside", moved)


def _path_in_method(case: MismatchCase, name: AccessPath, move_call: SourceNode) -> str:
    """Return `self.y` in a method of the object that holds both: `to()` of the user's class, which has returned."""
    match = match_code("$self.$name = $self.$name.$move(...)", move_call.statement)
    if match is None or name.last.kind != "attribute" or kinds.is_trained_leaf(name.last.value):
        return ""
    span = move_call.source.span(move_call.statement)  # its source may have been read another time
    setters = assignments(case.queries, name.last.owner, match["name"])
    is_there = span in (setter.source.span(setter.statement) for setter in setters)
    return f"{move_call.code.text(match['self'])}.{name.last.key}" if is_there else ""


def move_what_it_missed(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Below `net.cuda()` write `net.table = net.table.cuda()`; so with a list's items and a plain object's tensors."""
    name, move_call, frame = verdict.name, case.queries.own_node(verdict.moved), case.frame_of(verdict.name)
    if move_call is NOWHERE or not frame.is_there or verdict.move is None:
        return
    step, anchor = unregistered_step(verdict), Anchor(frame.code, move_call.statement, "below", frame)
    path = next((part for part in name.parts() if part.last is step), name)
    names, siblings = [path], items_of(name.last.owner) if path is name else []
    if len(siblings) > 1 and all(is_tensor(tensor) and case.odd_row(tensor) is not None for tensor in siblings):
        names = [name.prefix(len(name.references) - 1)]  # all weights of a dictionary
    elif not is_tensor(path.last.value) and not items_of(path.last.value):  # as of a distribution, `net.prior`
        names = [name, *(other for other in case.moment.beside(name) if case.odd_row(other.last.value) is not None)]
    if len(path.references) > 1 and path.code and move_call.function is frame.function and is_assignable(names[0]):
        values = [named.last.value for named in names]
        change = OwnLines.of(*names) if is_tensor(values[0]) else EachOf(names[0].code, values[0])
        rows = dict.fromkeys(_rows_before(case, values, verdict.move.op))
        yield from Proposal(anchor, change).fixes("fixed.below-line", anchor.moved_rows(case, rows))


def _rows_before(case: MismatchCase, value: Any, op: OpId) -> Iterator[TensorId]:
    """Yield the tensors of a container as they were at an op, before later ones were made of them."""
    if not is_tensor(value):
        for item in items_of(value):
            yield from _rows_before(case, item, op)
        return
    row = case.moment.row(value)
    path = find_origin(case.queries, row).path if row is not None else ()
    yield from (past for past in path if case.queries.producer(case.queries.base(past)) < op)


def move_optimizer_state(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Below the line that moved an optimizer's parameters add a loop over its state.

    The count of steps stays where the optimizer reads it.
    """
    move = case.queries.own_node(verdict.moved)
    states = (name for name in (verdict.name, *case.names) if name.is_state_of_an_optimizer)
    for name, frame in ((state, case.frame_of(state)) for state in states):
        is_here = move.source is frame.source and move.function is frame.function
        line = move.statement if is_here else next(lines_that_ran(frame, move.code.site), None)  # or a call to there
        if not frame.is_there or line is None or verdict.move is None:
            continue
        path = next(part for part in name.parts() if kinds.is_optimizer(part.last.value))
        anchor, optimizer = Anchor(frame.code, line, "below", frame), path.last.value
        # So that a graph can capture them, some count their steps where the parameters are.
        counts_there = any(group.get(key) is True for group in groups_of(optimizer) for key in ("capturable", "fused"))
        condition = 'hasattr(v, "to")' if counts_there else 'k != "step" and hasattr(v, "to")'
        if path.code and anchor.device:
            edit = anchor.edit(
                f"for state in {path.code}.state.values():",
                f"    state.update({{k: v.to({anchor.device}) for k, v in state.items() if {condition}}})",
            )
            tensors = (tensor for _, key, tensor in states_of(optimizer) if key != "step")
            rows = [row for tensor in tensors if (row := case.odd_row(tensor)) is not None]
            moved = (Moved(row, max(since, verdict.move.op)) for row, since in anchor.moved_rows(case, rows))
            yield from suggested(sentence("fixed.optimizer-state"), edit, moved=moved)


def bring_module_back(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """After the line that sent a module away, or the call of the function that did: `model.to(device)`.

    Or above the failing line, where those between need the old device.
    """
    sending_site = case.queries.site(verdict.sent_by.site) if verdict.sent_by is not None else None
    if sending_site is None or verdict.module is NO_PATH:
        return
    for name in case.names:
        root, frame = registering_root(case, name), case.frame_of(name)
        if root is None or not frame.is_there:
            continue
        anchors = [Anchor(frame.code, line, "below", frame) for line in lines_that_ran(frame, sending_site)]
        for anchor in (*anchors, Anchor(frame.code, frame.source_node.statement, "above", frame)):
            yield from Proposal(anchor, OwnLines.of(root)).fixes("fixed.bring-back", anchor.moved(case, root))


def move_with_others(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Turn `return x.to(device), y` into `return x.to(device), y.to(device)`; so for a dictionary or a call."""
    for name in case.names:
        row = case.moment.row(name.last.value)
        for group, odd_key in _groups_passed_on(case, name) if row is not None else ():
            for move_call, others_move in _moves_of_others(case, group, odd_key):
                assert row is not None
                moved = [Moved(row, OpId(max(others_move.op, case.queries.producer(row)) + 1))]  # from when both exist
                yield from _as_another_keyword(move_call, odd_key, moved)
                for element in _odd_elements(case, group, odd_key, move_call, others_move):
                    anchor = Anchor(move_call.code, element, "at")
                    proposal = Proposal(anchor, Within((element,)), call=move_call.code.method_call(move_call.node))
                    yield from proposal.fixes("fixed.beside", moved)


def _as_another_keyword(move_call: SourceNode, key: Any, moved: list[Moved]) -> Iterator[Fix]:
    """Pass `y=batch.y.to(device)` too, to `batch._replace(x=batch.x.to(device))` or `replace(batch, x=...)`."""
    call = move_call.source.nearest(ast.Call, move_call.source.parent(move_call.node) or move_call.node)
    values = [word.value for word in call.keywords] if call is not None else []
    if call is None or move_call.node not in values or called_name(call) not in REPLACES:
        return
    original = next(iter(call.args), None) if called_name(call) == "replace" else owner_of(call)
    if original is not None and keyword(call, key) is None:
        code = f"{move_call.code.text(original)}.{key}.{move_call.code.method_call(move_call.node)}"
        new = move_call.code.with_argument(call, key, code)
        yield from rewritten(move_call.code, {call: new}, "fixed.beside", moved, shown=f"{key}={code}")


def _groups_passed_on(case: MismatchCase, name: AccessPath) -> Iterator[tuple[Group, Any]]:
    """Yield the group of values that were passed on together, in order, and the odd one's key."""
    owner, key = name.last.owner, name.last.key
    if owner is not None:
        parts = {reference.key: reference.value for reference in members(owner)}
        fields = constructor_fields(type(owner))
        yield ({field: attribute(owner, field) for field in fields} if key in fields else parts), key
        return
    frame = case.frame_of(name)
    variables, arguments = frame.variables, parameters(frame.body)
    unpacked = [target.node for statement in frame.bindings(key)[-1:] for target in targets(statement)]
    for display in (display for target in unpacked for display in nodes_of(ast.Tuple, target)):
        names = list(map(variable, display.elts))
        if key in names:
            yield {text or index: variables.get(text) for index, text in enumerate(names)}, key
    if key in arguments:
        yield {argument: variables.get(argument) for argument in arguments}, key


def _moves_of_others(case: MismatchCase, group: Group, key: Any) -> Iterator[tuple[SourceNode, Move]]:
    """Yield the moves of a group's other values that code writes: `x.to(device)`."""
    for other, value in group.items():
        row = case.moment.row(value) if other != key else None
        move = move_of(case.queries, row) if row is not None and case.is_expected(row) else None
        move_call = case.queries.own_node(move.site) if move is not None else NOWHERE
        is_named = called_name(move_call.node) in case.queries.move_methods - {HOST}
        if move is not None and is_named and owner_of(move_call.node) is not None:
            yield move_call, move


def _odd_elements(case: MismatchCase, group: Group, key: Any, move_call: SourceNode, move: Move) -> Iterator[ast.expr]:
    """Yield `y` of `x.to(device), y`: an element beside another's move that is the odd tensor, or may be it."""
    frame = frame_at(case, move.site)
    for elements in _elements_by_key(move_call, list(group)):
        element = elements.pop(key, None)
        if element is not None and move_call.node in elements.values() and not names_device(element):
            value = evaluate(element, frame.scope()) if frame.is_there else MISSING
            if value is MISSING or value is group[key]:  # not known, or the odd tensor itself
                yield element


def _elements_by_key(expression: SourceNode, keys: list[Any]) -> Iterator[dict[Any, ast.expr]]:
    """Yield the elements of the tuple, dictionary or call around an expression, by the keys of a group."""
    outer = expression.code.source.parent(expression.node)
    outer = expression.code.source.parent(outer) if isinstance(outer, ast.keyword) else outer
    match outer:
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            yield dict(zip(keys, elements, strict=False))
        case ast.Dict(keys=names, values=values):
            pairs = zip(names, values, strict=True)
            yield {name.value: value for name, value in pairs if is_literal(name)}
        case ast.Call(args=arguments, keywords=words):
            by_keyword: dict[Any, ast.expr] = {word.arg: word.value for word in words if word.arg is not None}
            has_names = all(isinstance(key, str) for key in keys)  # the items of a list are no arguments
            is_new = has_names and called_name(outer) not in REPLACES  # `replace(batch, ...)` begins with an original
            positional = arguments if is_new and star_at(arguments) == len(arguments) else []
            for parameters_given in (keys, keys[1:]):  # a method's own call leaves out `self`
                yield {**dict(zip(parameters_given, positional, strict=False)), **by_keyword}
