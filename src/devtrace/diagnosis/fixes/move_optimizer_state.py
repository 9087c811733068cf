"""Below the move: the optimizer's state goes along."""

from __future__ import annotations

from devtrace.diagnosis.evidence import access_paths
from devtrace.diagnosis.evidence.case import Case, Verdict
from devtrace.diagnosis.fixes.fix import Fix, code_at, fix_if_complete, frame_of


def move_optimizer_state(case: Case, verdict: Verdict) -> Fix | None:
    """Add a loop over the state of the optimizer below the line that moved its parameters."""
    found = code_at(case, verdict.moved)
    for name in case.names:
        index = next((i for i, value in enumerate(name.objects) if access_paths.is_optimizer(value)), None)
        frame = frame_of(case, name)
        if not any(reference.kind == "state" for reference in name.references):
            continue
        if index is None or found is None or frame is None or found.code.source is not frame.source:
            continue
        optimizer, device = name.prefix(index + 1).code, frame.setup_device_code(found.line_below)
        if optimizer and device:
            lines = (
                f"for state in {optimizer}.state.values():",
                f'    state.update({{k: v.to({device}) for k, v in state.items() if hasattr(v, "to")}})',
            )
            return fix_if_complete(
                "build the optimizer after the move, or move its state along",
                found.code.below(found.statement, *lines),
            )
    return None
