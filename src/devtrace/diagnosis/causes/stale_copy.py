"""A copy, a view or a cache was taken before the original moved."""

from devtrace.diagnosis.evidence.mismatch_case import MismatchCase, Verdict, passed_by
from devtrace.diagnosis.evidence.missed_moves import move_of_the_original, moves_of_lineage
from devtrace.words.catalogue import sentence


def owner_has_an_early_copy(case: MismatchCase) -> Verdict | None:
    """A parameter was copied from one that moved later; its own module did not move."""
    owner = case.ownership
    if owner is None or owner.others or not owner.is_live:
        return None
    return was_copied_before_the_move(case)


def was_copied_before_the_move(case: MismatchCase) -> Verdict | None:
    """A parameter was copied (clone, zeros_like) before it moved."""
    move = move_of_the_original(case)
    return Verdict("stale-copy", born=case.born, name=case.name, move=move) if move is not None else None


def module_kept_a_cache(case: MismatchCase) -> Verdict | None:
    """A module made it in a call, keeps it as a plain attribute, and moved afterwards."""
    passing = case.passing_move
    birth = case.queries.producer(case.former_state) if case.former_state >= 0 else case.birth
    if passing is None or not case.was_made_in_a_call or birth >= passing.moves[-1].op:
        return None
    if case.queries.trace.ops.number("call", birth) < 0:
        return None  # made where the module is built
    return passed_by("stale-copy", case, passing)


def original_moved_without_it(case: MismatchCase) -> Verdict | None:
    """A copy is on the expected device, but the op got the original, or an older view."""
    move = next(moves_of_lineage(case), None)
    return Verdict("stale-copy", case.born, case.name, move=move) if move is not None else None


def reason(case: MismatchCase, verdict: Verdict) -> str:
    site, name, move = case.queries.site(verdict.moved), verdict.name, verdict.move
    is_the_original = name is not None and move is not None and case.moment.row(name.last.value) == move.source
    if site is not None and is_the_original:  # of a copy that another line moved for its own use
        return sentence("stale-copy.reason-itself", line=site, odd=case.odd_device, expected=case.expected_device)
    return sentence("stale-copy.reason", odd=case.odd_device, expected=case.expected_device)
