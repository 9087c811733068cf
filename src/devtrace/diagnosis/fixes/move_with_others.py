"""`return x.to(device), y` becomes `return x.to(device), y.to(device)`: some of what goes on together was moved."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, Final

from devtrace.diagnosis.evidence.access_paths import AccessPath
from devtrace.diagnosis.evidence.case import Case, Verdict
from devtrace.diagnosis.evidence.moves import Move, move_of
from devtrace.diagnosis.fixes.fix import Fix, Moved, SiteCode, code_at, frame_of, suggested
from devtrace.source.matching import called_names
from devtrace.source.object_walk import is_tensor, members
from devtrace.source.safe_values import class_dict
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import one_line

Group = dict[Any, Any]
"""Values that were given on together: by index in a tuple, by key of a dictionary, by name of a field or parameter."""

_MOVES: Final = frozenset(("to", "cuda", "cpu"))


def move_with_others(case: Case, verdict: Verdict) -> Iterator[Fix]:
    """Move an element of a tuple, a dictionary or a call as another element of it is moved there."""
    for name in case.snapshot.names(case.odd_tensor):
        for group, key in _groups(case, name):
            for found, move, element in _left_out(case, group, key):
                call = found.node
                assert isinstance(call, ast.Call)
                assert isinstance(call.func, ast.Attribute)
                arguments = ", ".join(found.code.text(part) for part in (*call.args, *call.keywords))
                new = found.code.called_on(element, f"{call.func.attr}({arguments})")
                since = max(move.op, case.queries.producer(case.odd_tensor)) + 1
                edit = found.code.replaced(element, new)
                yield from suggested(
                    sentence("fixed.beside", code=one_line(new)), edit, moved=[Moved(case.odd_tensor, since)]
                )


def _groups(case: Case, name: AccessPath) -> Iterator[tuple[Group, Any]]:
    """Yield what was given on together with what is named, and its own key."""
    owner, key = name.last.owner, name.last.key
    if owner is not None:
        parts = {reference.key: reference.value for reference in members(owner)}
        fields = _fields(type(owner))
        yield parts, key
        if key in fields:
            yield {at: parts.get(field) for at, field in enumerate(fields)}, fields.index(key)
        return
    frame = frame_of(case, name)
    if frame is None:
        return
    variables, code = frame.variables, case.snapshot.frames[frame.number].f_code
    for statement in frame.bindings(key)[-1:]:
        for names in _unpacked(statement):
            if key in names:
                yield {at: variables.get(each) for at, each in enumerate(names)}, names.index(key)
    parameters = code.co_varnames[: code.co_argcount]
    if key in parameters:
        yield variables, key
        yield {at: variables.get(each) for at, each in enumerate(parameters)}, parameters.index(key)


def _fields(kind: type) -> list[str]:
    """Return the fields of a dataclass in the order of its constructor."""
    fields = class_dict(kind).get("__dataclass_fields__")
    return list(fields) if type(fields) is dict else []


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
        if move is None or found is None or not isinstance(found.node, ast.Call):
            continue
        for elements, skipped in _around(found):
            element = elements.get(_shifted(key, -skipped))
            moved = elements.get(_shifted(other, -skipped))
            if moved is found.node and element is not None and not called_names(element) & _MOVES:
                yield found, move, element


def _shifted(key: Any, by: int) -> Any:
    return key + by if type(key) is int else key


def _around(found: SiteCode) -> Iterator[tuple[dict[Any, ast.expr], int]]:
    """Yield the elements of the tuple, dictionary or call that an expression is one of.

    Of a call also how many parameters stand before the arguments: `self` of a method.
    """
    outer = found.code.source.parent(found.node)
    outer = found.code.source.parent(outer) if isinstance(outer, ast.keyword) else outer
    match outer:
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            yield dict(enumerate(elements)), 0
        case ast.Dict(keys=keys, values=values):
            named = zip(keys, values, strict=True)
            yield {key.value: value for key, value in named if isinstance(key, ast.Constant)}, 0
        case ast.Call(args=arguments, keywords=words):
            given: dict[Any, ast.expr] = {word.arg: word.value for word in words if word.arg is not None}
            if not any(isinstance(each, ast.Starred) for each in arguments):
                given.update(enumerate(arguments))
            yield given, 0
            yield given, 1
