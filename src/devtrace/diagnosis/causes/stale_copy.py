"""A copy, a view or a cache was taken before the original moved."""

from devtrace.diagnosis.evidence.access_paths import NO_PATH
from devtrace.diagnosis.evidence.mismatch_case import MismatchCase, Verdict, passed_by
from devtrace.diagnosis.evidence.missed_moves import Ownership, PassingMove, move_of_the_original, moves_of_lineage
from devtrace.diagnosis.evidence.moves import Move
from devtrace.diagnosis.evidence.source_text import bound_above
from devtrace.diagnosis.evidence.trace_queries import NOWHERE
from devtrace.source.defuse import paths_in
from devtrace.trace.ids import NO_TENSOR
from devtrace.words.catalogue import sentence


def owner_has_an_early_copy(case: MismatchCase, owner: Ownership) -> Verdict | None:
    """A parameter was copied from one that moved later; its own module did not move."""
    return was_copied_before_the_move(case) if owner.is_live and not owner.others else None


def owner_was_made_of_what_moved_below(case: MismatchCase, owner: Ownership) -> Verdict | None:
    """Nobody recorded `ema = EMA(net)` and, below it in the same block, `net.to(device)`; `ema` owns the tensor."""
    if owner.others or owner.module is NO_PATH:
        return None
    kind, root = type(owner.module.last.value).__name__, owner.name.texts[0]
    for move in case.queries.trace.moves:
        moving_line = case.queries.own_node(move.site.id) if move.op < 0 and move.site is not None else NOWHERE
        maker = bound_above(moving_line, root) if str(move.device) == case.expected_trait else None
        if maker is not None and move.module.type == kind and move.module.path in paths_in(maker) - {root}:
            missed = Move(move.op, move.site.id, NO_TENSOR, NO_TENSOR)
            return Verdict("stale-copy", case.born, owner.name, owner.module, missed, certainty="inferred")
    return None


def was_copied_before_the_move(case: MismatchCase) -> Verdict | None:
    """A parameter was copied (clone, zeros_like) before it moved."""
    move = move_of_the_original(case)
    return Verdict("stale-copy", born=case.born, name=case.name, move=move) if move is not None else None


def module_kept_a_cache(case: MismatchCase, passing: PassingMove) -> Verdict | None:
    """A module made it in a call, keeps it as a plain attribute, and moved afterwards."""
    birth = case.queries.producer(case.former_state) if case.former_state >= 0 else case.birth
    if not case.was_made_in_a_call or birth >= passing.moves[-1].op:
        return None
    if case.queries.module(birth) < 0:
        return None  # made where the module is built
    return passed_by("stale-copy", case, passing)


def original_moved_without_it(case: MismatchCase) -> Verdict | None:
    """A copy is on the expected device, but the op got the original, or an older view."""
    move = next(moves_of_lineage(case), None)
    return Verdict("stale-copy", case.born, case.name, move=move) if move is not None else None


def reason(case: MismatchCase, verdict: Verdict) -> str:
    site, name, move = case.queries.site(verdict.moved), verdict.name, verdict.move
    is_the_original = move is not None and case.moment.row(name.last.value) == move.source
    if site is not None and is_the_original:  # of a copy that another line moved for its own use
        return sentence("stale-copy.reason-itself", line=site, odd=case.odd_trait, expected=case.expected_trait)
    return sentence("stale-copy.reason", odd=case.odd_trait, expected=case.expected_trait)
