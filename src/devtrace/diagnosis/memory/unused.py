"""Variables that hold memory and that nothing reads any more: `del narrow, trained` below their last use."""

from __future__ import annotations

import ast
import gc
from types import FrameType
from typing import Any, Final

from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.evidence.failure_snapshot import FailureSnapshot
from devtrace.diagnosis.findings import Edit
from devtrace.diagnosis.memory.holdings import Group, Memory
from devtrace.source.matching import names_in
from devtrace.source.object_walk import may_lead, registered
from devtrace.source.parsing import Source
from devtrace.words.catalogue import sentence

_MOST_OBJECTS: Final = 300_000


def deleted(memory: Memory, snapshot: FailureSnapshot) -> tuple[str, tuple[Edit, ...]] | None:
    """Delete what a running function will not read again, where that is worth it."""
    queries = memory.queries
    for row, frame in queries.frames:
        site = queries.site(row)
        source = queries.read(site.file, site.line, site.cell_id) if site is not None else None
        if site is None or source is None or site.cell is not None:
            continue
        body = _body(source, frame)
        last = _last_reads(source, body, site.line)
        groups = [group for group in memory.groups if group.root in last and _is_of(group, frame)]
        unread = {name for name in {group.root for group in groups} if not _is_led_to(snapshot, frame, name, set(last))}
        groups = [group for group in groups if not _is_led_to_otherwise(group, snapshot, set(last))]
        names = sorted({group.root for group in groups} & unread)
        size = sum(group.bytes for group in groups if group.root in names)
        if names and size >= max(0.1 * memory.total, 1):
            statement = max((last[name] for name in names), key=lambda each: source.span(each).line)
            edit = Code(source, site).below(statement, f"del {', '.join(names)}")
            if edit is not None:
                return sentence("out-of-memory.help-del", names=[f"`{name}`" for name in names], count=len(names)), (
                    edit,
                )
    return None


def _is_of(group: Group, frame: FrameType) -> bool:
    code = frame.f_code
    return group.scope == (code.co_filename, code.co_qualname, code.co_firstlineno)


def _body(source: Source, frame: FrameType) -> list[ast.stmt]:
    """Return the statements of a running function; of a file none, as functions of others may read its variables."""
    function = source.body_of(frame.f_code)
    body = getattr(function, "body", [])
    return body if isinstance(body, list) else []


def _last_reads(source: Source, body: list[ast.stmt], line: int) -> dict[str, ast.stmt]:
    """Return the variables that no statement reads from a line on, each with the statement that read it last."""
    spans = [source.span(each) for each in body]
    now = next((at for at, span in enumerate(spans) if span.line <= line <= span.end_line), len(body))
    later = names_in(*body[now:])
    found: dict[str, ast.stmt] = {}
    for statement in body[:now]:
        found.update(dict.fromkeys(names_in(statement) - later, statement))
    return found


def _is_led_to(snapshot: FailureSnapshot, owner: FrameType, name: str, unread: set[str]) -> bool:
    """Return whether a variable that is still read leads to what a name is of, or to a part of that model."""
    value = owner.f_locals.get(name)
    wanted = {id(value), *(id(tensor) for _, tensor in registered(value))}
    rest: list[Any] = []
    for frame in snapshot.frames:
        rest += [value for key, value in frame.f_locals.items() if frame is not owner or key not in unread]
    seen = {id(value) for value in rest}
    while rest and len(seen) < _MOST_OBJECTS:
        value = rest.pop()
        if id(value) in wanted:
            return True
        if not isinstance(value, type) and not (type(value) is dict and "__builtins__" in value):
            new = [each for each in gc.get_referents(value) if may_lead(each) and id(each) not in seen]
            seen.update(map(id, new))
            rest += new
    return bool(rest)


def _is_led_to_otherwise(group: Group, snapshot: FailureSnapshot, unread: set[str]) -> bool:
    """Return whether a variable that is still read leads to the largest of what a name holds."""
    largest = max(group.holdings, key=lambda each: each.bytes)
    paths = snapshot.names(largest.tensor) if largest.tensor >= 0 else []
    return any(path.texts[0] not in unread for path in paths)
