"""`return x.to(device), y` becomes `return x.to(device), y.to(device)`: some of what goes on together was moved."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, Final

from devtrace.diagnosis.evidence.access_paths import AccessPath
from devtrace.diagnosis.evidence.case import Case, Verdict
from devtrace.diagnosis.evidence.moves import Move, move_of
from devtrace.diagnosis.fixes.fix import Fix, Moved, SiteCode, code_at, frame_of, names_its_device, suggested
from devtrace.source.matching import match_code
from devtrace.source.object_walk import is_tensor, members
from devtrace.source.safe_values import attribute, constructor_fields
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import one_line

Group = dict[Any, Any]
"""Values that were given on together, in their order, by index, key, or name of a variable, field or parameter."""

_MOVES: Final = ("$x.to(...)", "$x.cuda(...)")


def move_with_others(case: Case, verdict: Verdict) -> Iterator[Fix]:
    """Move an element of a tuple, a dictionary or a call as another element of it is moved there."""
    for name in case.snapshot.names(case.odd_tensor):
        row = case.snapshot.row(name.last.value)
        for group, key in _groups(case, name) if row is not None else ():
            for found, move, element in _left_out(case, group, key):
                assert row is not None
                new = found.code.called_on(element, found.code.method_call(found.node))
                moved = [Moved(row, max(move.op, case.queries.producer(row)) + 1)]
                edit = found.code.replaced(element, new)
                yield from suggested(sentence("fixed.beside", code=one_line(new)), edit, moved=moved)


def _groups(case: Case, name: AccessPath) -> Iterator[tuple[Group, Any]]:
    """Yield what was given on together with what is named, in its order, and its own key."""
    owner, key = name.last.owner, name.last.key
    if owner is not None:
        parts = {reference.key: reference.value for reference in members(owner)}
        fields = constructor_fields(type(owner))
        yield ({field: attribute(owner, field) for field in fields} if key in fields else parts), key
        return
    frame = frame_of(case, name)
    if frame is None:
        return
    variables, code = frame.variables, case.snapshot.frames[frame.number].f_code
    for statement in frame.bindings(key)[-1:]:
        for names in _unpacked(statement):
            if key in names:
                yield {each or at: variables.get(each) for at, each in enumerate(names)}, key
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    if key in parameters:
        yield {each: variables.get(each) for each in parameters}, key


def _unpacked(statement: ast.stmt) -> Iterator[list[str]]:
    """Yield the variables of each tuple that an assignment or a loop unpacks into."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    for target in targets:
        for node in ast.walk(target) if target is not None else ():
            if isinstance(node, ast.Tuple):
                yield [each.id if isinstance(each, ast.Name) else "" for each in node.elts]


def _left_out(case: Case, group: Group, key: Any) -> Iterator[tuple[SiteCode, Move, ast.expr]]:
    """Yield the moves of others of a group, each with the element beside it that is the odd tensor."""
    for other, value in group.items():
        row = case.snapshot.row(value) if is_tensor(value) and other != key else None
        move = move_of(case.queries, row) if row is not None and case.is_expected(row) else None
        found = code_at(case, move.site) if move is not None else None
        if move is None or found is None or not any(match_code(code, found.node) for code in _MOVES):
            continue
        for elements in _around(found, list(group)):
            element = elements.get(key)
            if elements.get(other) is found.node and element is not None and not names_its_device(element):
                yield found, move, element


def _around(found: SiteCode, keys: list[Any]) -> Iterator[dict[Any, ast.expr]]:
    """Yield the elements of the tuple, dictionary or call that an expression is one of, by the keys of a group."""
    outer = found.code.source.parent(found.node)
    outer = found.code.source.parent(outer) if isinstance(outer, ast.keyword) else outer
    match outer:
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            yield dict(zip(keys, elements, strict=False))
        case ast.Dict(keys=names, values=values):
            named = zip(names, values, strict=True)
            yield {name.value: value for name, value in named if isinstance(name, ast.Constant)}
        case ast.Call(args=arguments, keywords=words):
            given: dict[Any, ast.expr] = {word.arg: word.value for word in words if word.arg is not None}
            plain = [] if any(isinstance(each, ast.Starred) for each in arguments) else arguments
            for after_self in (keys, keys[1:]):
                yield {**dict(zip(after_self, plain, strict=False)), **given}
