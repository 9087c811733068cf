"""All causes, and the order in which their predicates are asked: that of certainty; the first one with evidence wins.

What holds the tensor (a moved module, an optimizer) tells more than how it was made.
How it was made tells more than that nothing ever moved it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final, NamedTuple, TypeVar

from devtrace.diagnosis.causes import (
    asked_at_rest,
    attached_after_move,
    created_without_device,
    default_device,
    never_moved,
    not_registered,
    stale_copy,
    wrong_device,
)
from devtrace.diagnosis.evidence.mismatch_case import MismatchCase, Predicate, Verdict
from devtrace.diagnosis.slugs import CauseSlug
from devtrace.features import find

T = TypeVar("T")
_REASONS: Final[Mapping[CauseSlug, Callable[[MismatchCase, Verdict], str]]] = {
    "attached-after-move": attached_after_move.reason,
    "not-registered": not_registered.reason,
    "created-without-device": created_without_device.reason,
    "never-moved": never_moved.reason,
    "stale-copy": stale_copy.reason,
    "wrong-device": wrong_device.reason,
    "default-device": default_device.reason,
    "asked-at-rest": asked_at_rest.reason,
}
"""What a message says of a cause; of the others its first sentence says all."""


def about(
    find: Callable[[MismatchCase], T | None], *claims: Callable[[MismatchCase, T], Verdict | None]
) -> tuple[Predicate, ...]:
    """Make predicates of claims about a part of a case, as its owner; they claim nothing where `find` finds none."""

    def predicate_of(claim: Callable[[MismatchCase, T], Verdict | None]) -> Predicate:
        return lambda case: claim(case, part) if (part := find(case)) is not None else None

    return tuple(map(predicate_of, claims))


A_MODULE_OWNS_IT: Final = about(
    lambda case: case.ownership,
    wrong_device.module_was_sent_away,
    attached_after_move.part_is_newer_than_the_move,
    not_registered.was_recorded_as_an_attribute,
    not_registered.owner_is_in_a_plain_container,
    stale_copy.owner_has_an_early_copy,
    stale_copy.owner_was_made_of_what_moved_below,
    never_moved.owner_was_not_moved_with_it,
    wrong_device.module_is_on_another_device,
)
A_MODULE_KEEPS_IT: Final = about(
    lambda case: case.passing_move,
    stale_copy.module_kept_a_cache,
    created_without_device.module_made_a_cache,
    not_registered.module_has_it_unregistered,
)


def a_root_explains_it(case: MismatchCase) -> Verdict | None:
    """Look for a module that owns one of the tensors that this one was computed from."""
    for predicates in (A_MODULE_OWNS_IT, A_MODULE_KEEPS_IT):
        for root in case.root_cases:
            verdict = _first(predicates, root)
            if verdict is not None:
                return verdict
    return None


KEPT: Final[tuple[Predicate, ...]] = (
    *A_MODULE_OWNS_IT,
    stale_copy.was_copied_before_the_move,
    created_without_device.optimizer_made_it_in_its_step,
    never_moved.optimizer_keeps_it,
    *A_MODULE_KEEPS_IT,
    a_root_explains_it,
    never_moved.it_was_computed_from_what_stayed,
    wrong_device.it_was_put_on_this_device,
)
STAYED: Final[tuple[Predicate, ...]] = (
    never_moved.nobody_kept_the_moved_copy,
    never_moved.nobody_kept_the_moved_whole,
    stale_copy.original_moved_without_it,
    never_moved.nothing_moved_it,
)
PREDICATES: Final[tuple[Predicate, ...]] = (
    wrong_device.it_has_no_data,
    *KEPT,
    default_device.factory_made_it_on_an_accelerator,
    created_without_device.factory_ran_during_the_computation,
    *STAYED,
)


def reason_of_device(case: MismatchCase, verdict: Verdict) -> str:
    reason_of = _REASONS.get(verdict.kind)
    return reason_of(case, verdict) if reason_of is not None else ""


class Causes(NamedTuple):
    """Causes of a trait in their order, the sentence on why, and what they are called if not as those of a device."""

    predicates: tuple[Predicate, ...]
    reason: Callable[[MismatchCase, Verdict], str]
    called: Mapping[CauseSlug, CauseSlug]


OF_DEVICE: Final = Causes(PREDICATES, reason_of_device, {})


WITHOUT_BIRTHS: Final = about(lambda case: case.ownership, attached_after_move.part_was_attached_after_the_move)
"""Claims that hold whenever the tensor was made: that was while nothing was recorded."""


def find_verdict(case: MismatchCase) -> Verdict:
    """Return the verdict of the first predicate with evidence, under the cause's name for the trait."""
    predicates = asked_at_rest.weights_wait_elsewhere, *_predicates(case)  # a claim of hooks, whatever was recorded
    verdict = _first(predicates, case) or Verdict("unknown", born=case.born, name=case.name)
    return replace(verdict, cause=_causes(case).called.get(verdict.cause, verdict.cause))


def _causes(case: MismatchCase) -> Causes:
    of_feature: Causes | None = find("cause", case.queries.by.name)  # as `dtypes` brings
    return of_feature or OF_DEVICE


def _predicates(case: MismatchCase) -> tuple[Predicate, ...]:
    """Return the predicates for a case; if births may be missing, none that depends on one."""
    if case.is_undated:
        return WITHOUT_BIRTHS
    if case.was_registered_late:
        return A_MODULE_OWNS_IT
    return _causes(case).predicates


def _first(predicates: Iterable[Predicate], case: MismatchCase) -> Verdict | None:
    return next((verdict for predicate in predicates if (verdict := predicate(case)) is not None), None)


def reason(case: MismatchCase, verdict: Verdict) -> str:
    """Return the sentence on why; empty where there is none."""
    return _causes(case).reason(case, verdict)
