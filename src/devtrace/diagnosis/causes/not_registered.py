"""A module holds a tensor as a plain attribute, or in a list or dict, and `.to()` skips those."""

from typing import Final

from devtrace.diagnosis.evidence.mismatch_case import MismatchCase, Verdict, owned, passed_by
from devtrace.diagnosis.evidence.missed_moves import Ownership, PassingMove, find_passing_move
from devtrace.diagnosis.fixes.register_on_module import unregistered_step
from devtrace.words.catalogue import sentence


def was_recorded_as_an_attribute(case: MismatchCase, owner: Ownership) -> Verdict | None:
    was_moved = not owner.is_registered and owner.last_move is not None
    return owned("not-registered", case, owner) if was_moved else None


def owner_is_in_a_plain_container(case: MismatchCase, owner: Ownership) -> Verdict | None:
    """A module further out was moved, and reaches the owner only through a list or a dict."""
    passing = find_passing_move(case, owner.names) if not owner.others else None
    return passed_by("not-registered", case, passing) if passing is not None else None


def module_has_it_unregistered(case: MismatchCase, passing: PassingMove) -> Verdict | None:
    """It existed when its module moved, or its source did; no call of the module made it."""
    if case.was_made_after(passing.moves[-1].op) and case.former_state < 0:
        return None
    if case.was_made_in_a_call and case.origin.arrival == "copied":
        return None
    return passed_by("not-registered", case, passing)


def reason(case: MismatchCase, verdict: Verdict) -> str:
    step = unregistered_step(verdict)
    if step is None:
        return sentence("not-registered.reason-unnamed")
    is_container = type(step.value) in _CONTAINERS
    return sentence(
        "not-registered.reason-container" if is_container else "not-registered.reason",
        module=verdict.module_text,
        attribute=step.key,
        **({"kind": type(step.value).__name__} if is_container else {}),
    )


_CONTAINERS: Final = (list, tuple, dict)
