"""A part was attached to a module after the module had moved."""

from __future__ import annotations

from devtrace.diagnosis.causes.cause import Cause
from devtrace.diagnosis.evidence.case import Case, Verdict
from devtrace.diagnosis.fixes.held_objects import move_below
from devtrace.diagnosis.fixes.modules import move_when_attached


def part_is_newer_than_the_move(case: Case) -> Verdict | None:
    owner = case.ownership
    if owner is None or owner.last_move is None or not owner.is_registered:
        return None
    if not owner.is_newer_than_the_move and not owner.was_moved_as_a_whole:
        return None
    return Verdict(
        "attached-after-move",
        born=case.born,
        name=owner.name,
        module=owner.module,
        move=owner.last_move,
        others=len(owner.others),
        certainty="seen" if owner.is_live and owner.is_newer_than_the_move else "inferred",
    )


def _reason(case: Case, verdict: Verdict) -> str:
    return f"It was {verdict.probably}attached to {verdict.module_text} after the move, which could not see it."


CAUSE = Cause(
    slug="attached-after-move",
    meaning="a layer or parameter was put into the model after `model.to()`",
    what_helps="move again, or move what you attach",
    born_remark="after",
    moved_remark="which could not see it",
    reason=_reason,
    advice="move the model again after attaching this part",
    fixes=(move_when_attached, move_below),
)
