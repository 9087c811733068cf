"""Below the move: the optimizer's state goes along; the count of steps stays where the optimizer reads it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from devtrace.diagnosis.evidence import access_paths
from devtrace.diagnosis.evidence.access_paths import AccessPath
from devtrace.diagnosis.evidence.case import Case, Verdict
from devtrace.diagnosis.evidence.way import Passed
from devtrace.diagnosis.fixes.fix import Fix, Moved, code_at, frame_of, suggested
from devtrace.source.object_walk import is_tensor, stored
from devtrace.source.safe_values import instance_dict
from devtrace.words.catalogue import sentence

_BUT_THE_COUNT: Final = 'k != "step" and hasattr(v, "to")'


def move_optimizer_state(case: Case, verdict: Verdict) -> Iterator[Fix]:
    """Add a loop over the state of the optimizer below the line that moved its parameters."""
    found = code_at(case, verdict.moved)
    for name in (*([verdict.name] if verdict.name is not None else []), *case.names):
        index = next((i for i, value in enumerate(name.objects) if access_paths.is_optimizer(value)), None)
        frame = frame_of(case, name)
        if not any(reference.kind == "state" for reference in name.references):
            continue
        if index is None or found is None or frame is None or found.code.source is not frame.source:
            continue
        optimizer, device = name.prefix(index + 1).code, frame.setup_device_code(found.line_below)
        if optimizer and device:
            moving = 'hasattr(v, "to")' if _counts_on_the_device(name.objects[index]) else _BUT_THE_COUNT
            lines = (
                f"for state in {optimizer}.state.values():",
                f"    state.update({{k: v.to({device}) for k, v in state.items() if {moving}}})",
            )
            births = {row: case.queries.producer(case.queries.base(row)) for row in _rows(case, name)}
            passed = Passed.below(frame, found.line_below - 1)
            since = [Moved(row, passed.since(birth)) for row, birth in births.items()]
            yield from suggested(
                sentence("fixed.optimizer-state"),
                found.code.below(found.statement, *lines),
                moved=since,
            )


def _counts_on_the_device(optimizer: object) -> bool:
    """Return whether an optimizer counts its steps where the parameters are, so that a graph can capture them."""
    groups = instance_dict(optimizer).get("param_groups")
    each = [group for group in groups if type(group) is dict] if type(groups) is list else []
    return any(group.get(option) is True for group in each for option in ("capturable", "fused"))


def _rows(case: Case, name: AccessPath) -> list[int]:
    """Return the tensors on the odd device of the optimizer's state."""
    optimizer = next(value for value in name.objects if access_paths.is_optimizer(value))
    state = instance_dict(optimizer).get("state")
    of_each = (each for parameter in stored(state) for each in stored(parameter.value))
    kept = [each.value for each in of_each if is_tensor(each.value) and each.key != "step"]
    rows = [row for tensor in kept if (row := case.snapshot.row(tensor)) is not None]
    return [row for row in rows if case.queries.device(row) == case.odd_device]
