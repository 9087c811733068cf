"""Below `model.to(device)`: `model.state = tuple(each.to(device) for each in model.state)`, as `.to()` passes it by."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from devtrace.diagnosis.evidence.case import Case, Verdict
from devtrace.diagnosis.evidence.origins import find_origin
from devtrace.diagnosis.evidence.way import Passed
from devtrace.diagnosis.fixes.fix import Fix, Moved, code_at, frame_of, is_assignable, suggested
from devtrace.diagnosis.fixes.register_on_module import unregistered_step
from devtrace.source.object_walk import is_tensor
from devtrace.words.catalogue import sentence

_NAMES: Final = ("each", "part")


def move_container(case: Case, verdict: Verdict) -> Iterator[Fix]:
    """Move what a module keeps in a list, tuple or dict, below the line that moves the module."""
    step, moving = unregistered_step(verdict), code_at(case, verdict.moved)
    if step is None or moving is None or verdict.name is None or verdict.move is None:
        return
    at = next((n for n, each in enumerate(verdict.name.references, 1) if each is step), 0)
    path, frame = verdict.name.prefix(at), frame_of(case, verdict.name)
    if not at or frame is None or moving.function is not frame.function or not is_assignable(path):
        return
    line = moving.line_below - 1
    device = frame.setup_device_code(line + 1)
    new = all_moved(path.code, step.value, device) if path.code and device and not is_tensor(step.value) else ""
    if not new:
        return
    rows = dict.fromkeys(_rows_at(case, step.value, verdict.move.op))
    passed = Passed.below(frame, line)
    moved = [Moved(row, passed.since(case.queries.producer(case.queries.base(row)))) for row in rows]
    code = f"{path.code} = {new}"
    help = sentence("fixed.below-line", code=code, line=line)
    yield from suggested(help, frame.code.below(moving.statement, code), moved=moved)


def all_moved(code: str | None, value: Any, device: str, depth: int = 0) -> str:
    """Return the code that moves all tensors of a container that has nothing else; an empty text for any other."""
    if is_tensor(value):
        return f"{code}.to({device})"
    kind = type(value)
    parts = list(value.values()) if kind is dict else list(value) if kind in (list, tuple) else []
    if not parts or depth == len(_NAMES):
        return ""
    name = _NAMES[depth]
    inner = {all_moved(name, part, device, depth + 1) for part in parts}
    text = inner.pop()
    if inner or not text:
        return ""
    if kind is dict:
        return f"{{key: {text} for key, {name} in {code}.items()}}"
    return f"[{text} for {name} in {code}]" if kind is list else f"tuple({text} for {name} in {code})"


def _rows_at(case: Case, value: Any, op: int) -> Iterator[int]:
    """Yield the tensors of a container as they were at an op, which later ones may have been made of."""
    if not is_tensor(value):
        for part in value.values() if type(value) is dict else value:
            yield from _rows_at(case, part, op)
        return
    row = case.snapshot.row(value)
    made = find_origin(case.queries, row).path if row is not None else ()
    yield from (each for each in made[:] if case.queries.producer(case.queries.base(each)) < op)
