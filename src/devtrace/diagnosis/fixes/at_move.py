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
from devtrace.diagnosis.fixes.changes import Anchor, EachOf, OwnLines, Proposal, Within, rewritten, that_ran
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
"""Values that were given on together, in their order, by index, key, or name of a variable, field or parameter."""


def move_beside_neighbour(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Below `x = x.to(device)` repeat it: `y = y.to(device)`; in a method, below `self.x = self.x.to(device)`."""
    name, found, frame = verdict.name, case.queries.own_node(verdict.moved), case.frame_of(verdict.name)
    row, call = case.moment.row(name.last.value), found.code.method_call(found.node)
    if not frame.is_there or row is None or verdict.move is None or not is_assignable(name):
        return
    gives_another = case.queries.by.excludes(found.node, frame.scope(), case.expected_trait)
    if not isinstance(found.statement, ast.Assign) or not call or gives_another:
        return
    if found.function is not frame.function:
        anchor, path = Anchor(found.code, found.statement, "below"), _path_in_method(case, name, found)
        moved = [Moved(row, OpId(verdict.move.op + 1))]
    else:
        is_kept = name.last.owner is None and any(each.last.owner is not None for each in case.names)
        anchor, path = Anchor(found.code, found.statement, "below", frame), "" if is_kept else name.code
        moved = list(anchor.moved(case, name))
    yield from Proposal(anchor, OwnLines((path,) if path else ()), call=call).fixes("fixed.beside", moved)


def _path_in_method(case: MismatchCase, name: AccessPath, found: SourceNode) -> str:
    """Return `self.y` in a method of the object that holds both: `to()` of the user's class, which has returned."""
    neighbour = match_code("$self.$name = $self.$name.$move(...)", found.statement)
    if neighbour is None or name.last.kind != "attribute" or kinds.is_trained_leaf(name.last.value):
        return ""
    span = found.source.span(found.statement)  # its source may have been read another time
    given = assignments(case.queries, name.last.owner, neighbour["name"])
    is_there = span in (each.source.span(each.statement) for each in given)
    return f"{found.code.text(neighbour['self'])}.{name.last.key}" if is_there else ""


def move_what_it_missed(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Below `net.cuda()` write `net.table = net.table.cuda()`; so with a list's items and a plain object's tensors."""
    name, moving, frame = verdict.name, case.queries.own_node(verdict.moved), case.frame_of(verdict.name)
    if moving is NOWHERE or not frame.is_there or verdict.move is None:
        return
    step, anchor = unregistered_step(verdict), Anchor(frame.code, moving.statement, "below", frame)
    path = next((part for part in name.parts() if part.last is step), name)
    names, beside = [path], items_of(name.last.owner) if path is name else []
    if len(beside) > 1 and all(is_tensor(each) and case.odd_row(each) is not None for each in beside):
        names = [name.prefix(len(name.references) - 1)]  # all weights of a dictionary
    elif not is_tensor(path.last.value) and not items_of(path.last.value):  # as of a distribution, `net.prior`
        names = [name, *(each for each in case.moment.beside(name) if case.odd_row(each.last.value) is not None)]
    if len(path.references) > 1 and path.code and moving.function is frame.function and is_assignable(names[0]):
        values = [each.last.value for each in names]
        change = OwnLines.of(*names) if is_tensor(values[0]) else EachOf(names[0].code, values[0])
        rows = dict.fromkeys(_rows_at(case, values, verdict.move.op))
        yield from Proposal(anchor, change).fixes("fixed.below-line", anchor.moved_rows(case, rows))


def _rows_at(case: MismatchCase, value: Any, op: OpId) -> Iterator[TensorId]:
    """Yield the tensors of a container as they were at an op, before later ones were made of them."""
    if not is_tensor(value):
        for part in items_of(value):
            yield from _rows_at(case, part, op)
        return
    row = case.moment.row(value)
    made = find_origin(case.queries, row).path if row is not None else ()
    yield from (each for each in made if case.queries.producer(case.queries.base(each)) < op)


def move_optimizer_state(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Below the line that moved an optimizer's parameters add a loop over its state.

    The count of steps stays where the optimizer reads it.
    """
    found = case.queries.own_node(verdict.moved)
    states = (name for name in (verdict.name, *case.names) if name.is_state_of_an_optimizer)
    for name, frame in ((each, case.frame_of(each)) for each in states):
        is_here = found.source is frame.source and found.function is frame.function
        ran = found.statement if is_here else next(that_ran(frame, found.code.site), None)  # or a call of its function
        if not frame.is_there or ran is None or verdict.move is None:
            continue
        optimizer = next(part for part in name.parts() if kinds.is_optimizer(part.last.value))
        anchor, value = Anchor(frame.code, ran, "below", frame), optimizer.last.value
        # So that a graph can capture them, some count their steps where the parameters are.
        counts_there = any(group.get(key) is True for group in groups_of(value) for key in ("capturable", "fused"))
        which = 'hasattr(v, "to")' if counts_there else 'k != "step" and hasattr(v, "to")'
        if optimizer.code and anchor.device:
            edit = anchor.edit(
                f"for state in {optimizer.code}.state.values():",
                f"    state.update({{k: v.to({anchor.device}) for k, v in state.items() if {which}}})",
            )
            odd = (case.odd_row(tensor) for _, key, tensor in states_of(value) if key != "step")
            rows = [row for row in odd if row is not None]
            moved = (Moved(row, max(since, verdict.move.op)) for row, since in anchor.moved_rows(case, rows))
            yield from suggested(sentence("fixed.optimizer-state"), edit, moved=moved)


def bring_module_back(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """After the line that sent a module away, or the call of the function that did: `model.to(device)`.

    Or above the failing line, where those between need the old device.
    """
    sent = case.queries.site(verdict.sent_by.site) if verdict.sent_by is not None else None
    if sent is None or verdict.module is NO_PATH:
        return
    for name in case.names:
        root, frame = registering_root(case, name), case.frame_of(name)
        if root is None or not frame.is_there:
            continue
        anchors = [Anchor(frame.code, each, "below", frame) for each in that_ran(frame, sent)]
        for anchor in (*anchors, Anchor(frame.code, frame.source_node.statement, "above", frame)):
            yield from Proposal(anchor, OwnLines.of(root)).fixes("fixed.bring-back", anchor.moved(case, root))


def move_with_others(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Turn `return x.to(device), y` into `return x.to(device), y.to(device)`; so for a dictionary or a call."""
    for name in case.names:
        row = case.moment.row(name.last.value)
        for group, key in _groups(case, name) if row is not None else ():
            for found, move in _moves_of_others(case, group, key):
                assert row is not None
                moved = [Moved(row, OpId(max(move.op, case.queries.producer(row)) + 1))]
                yield from _given_too(found, key, moved)
                for element in _left_out(case, group, key, found, move):
                    anchor = Anchor(found.code, element, "at")
                    proposal = Proposal(anchor, Within((element,)), call=found.code.method_call(found.node))
                    yield from proposal.fixes("fixed.beside", moved)


def _given_too(found: SourceNode, key: Any, moved: list[Moved]) -> Iterator[Fix]:
    """Give `batch._replace(x=batch.x.to(device))`, or `replace(batch, ...)`, `y=batch.y.to(device)` too."""
    call = found.source.nearest(ast.Call, found.source.parent(found.node) or found.node)
    given = [word.value for word in call.keywords] if call is not None else []
    if call is None or found.node not in given or called_name(call) not in REPLACES:
        return
    whole = next(iter(call.args), None) if called_name(call) == "replace" else owner_of(call)
    if whole is not None and keyword(call, key) is None:
        code = f"{found.code.text(whole)}.{key}.{found.code.method_call(found.node)}"
        new = found.code.with_argument(call, key, code)
        yield from rewritten(found.code, {call: new}, "fixed.beside", moved, shown=f"{key}={code}")


def _groups(case: MismatchCase, name: AccessPath) -> Iterator[tuple[Group, Any]]:
    """Yield the group of values that were passed on together, in order, and the odd one's key."""
    owner, key = name.last.owner, name.last.key
    if owner is not None:
        parts = {reference.key: reference.value for reference in members(owner)}
        fields = constructor_fields(type(owner))
        yield ({field: attribute(owner, field) for field in fields} if key in fields else parts), key
        return
    frame = case.frame_of(name)
    variables, given = frame.variables, parameters(frame.body)
    unpacked = [target.node for statement in frame.bindings(key)[-1:] for target in targets(statement)]
    for node in (inner for each in unpacked for inner in nodes_of(ast.Tuple, each)):
        names = list(map(variable, node.elts))
        if key in names:
            yield {each or at: variables.get(each) for at, each in enumerate(names)}, key
    if key in given:
        yield {each: variables.get(each) for each in given}, key


def _moves_of_others(case: MismatchCase, group: Group, key: Any) -> Iterator[tuple[SourceNode, Move]]:
    """Yield the written moves of a group's other values: `x.to(device)`."""
    for other, value in group.items():
        row = case.moment.row(value) if other != key else None
        move = move_of(case.queries, row) if row is not None and case.is_expected(row) else None
        found = case.queries.own_node(move.site) if move is not None else NOWHERE
        is_named = called_name(found.node) in case.queries.move_methods - {HOST}
        if move is not None and is_named and owner_of(found.node) is not None:
            yield found, move


def _left_out(case: MismatchCase, group: Group, key: Any, found: SourceNode, move: Move) -> Iterator[ast.expr]:
    """Yield the element beside the move of another that is the odd tensor, or may be it."""
    frame = frame_at(case, move.site)
    for elements in _around(found, list(group)):
        element = elements.pop(key, None)
        if element is not None and found.node in elements.values() and not names_device(element):
            value = evaluate(element, frame.scope()) if frame.is_there else MISSING
            if value is MISSING or value is group[key]:
                yield element


def _around(found: SourceNode, keys: list[Any]) -> Iterator[dict[Any, ast.expr]]:
    """Yield the elements of the tuple, dictionary or call that an expression is one of, by the keys of a group."""
    outer = found.code.source.parent(found.node)
    outer = found.code.source.parent(outer) if isinstance(outer, ast.keyword) else outer
    match outer:
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            yield dict(zip(keys, elements, strict=False))
        case ast.Dict(keys=names, values=values):
            named = zip(names, values, strict=True)
            yield {name.value: value for name, value in named if is_literal(name)}
        case ast.Call(args=arguments, keywords=words):
            given: dict[Any, ast.expr] = {word.arg: word.value for word in words if word.arg is not None}
            has_names = all(isinstance(key, str) for key in keys)  # the items of a list are no arguments
            is_new = has_names and called_name(outer) not in REPLACES  # else its first argument is a whole
            plain = arguments if is_new and star_at(arguments) == len(arguments) else []
            for after_self in (keys, keys[1:]):
                yield {**dict(zip(after_self, plain, strict=False)), **given}
