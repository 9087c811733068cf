"""The fix of a mismatch: of all that the causes' strategies suggest, what is proven, and whole.

One tensor after the other is put on the expected device until the failing op, and the line around it, would run. What
an edit would break on the way there is put right with it, as one fix of several edits. Where that fails: words.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from devtrace.diagnosis.causes.cause import Strategy
from devtrace.diagnosis.causes.ordered import CAUSES, find_verdict
from devtrace.diagnosis.edits import merged
from devtrace.diagnosis.evidence.case import Case, Verdict
from devtrace.diagnosis.evidence.trace_queries import META
from devtrace.diagnosis.fixes import about_to_fail, proof
from devtrace.diagnosis.fixes.fix import Fix
from devtrace.diagnosis.fixes.move_at_use import move_at_use
from devtrace.diagnosis.fixes.move_before_update import move_before_update
from devtrace.diagnosis.fixes.move_container import move_container
from devtrace.diagnosis.fixes.pass_device_to_factory import pass_device_to_factory
from devtrace.diagnosis.fixes.replay import Recorded, Replay
from devtrace.words.catalogue import sentence

FOR_EVERY_CAUSE: Final[tuple[Strategy, ...]] = (move_at_use, move_before_update, move_container)
MOST_PARTS: Final = 8
MOST_TRIES: Final = 8


def find_fix(case: Case, verdict: Verdict) -> Fix:
    """Return the first fix for the cause that is proven; advice alone where none is."""
    if case.in_a_replica:
        return Fix(sentence("fixed.for-replicas"))
    if case.mismatch.of == "gradient":
        return Fix(sentence("fixed.for-gradient", expected=case.expected_device))
    if case.odd_device == META:
        return next(pass_device_to_factory(case, verdict), None) or Fix(sentence("fixed.for-meta"))
    recorded = Recorded(case.queries)
    for part in _suggested(case, verdict):
        whole = _completed(recorded, case, part) if part.edits else part
        if whole is not None:
            return whole
    return Fix(CAUSES[verdict.cause].advice(case.expected_device))


def _suggested(case: Case, verdict: Verdict) -> Iterator[Fix]:
    """Yield what the strategies suggest, each of it possible at its lines."""
    if not case.snapshot.frames:
        return
    is_state = any(reference.kind == "state" for name in case.names for reference in name.references)
    roots = case.cases_of_roots if not is_state else []  # a restored state is cast to where its parameter is
    about = [(case, verdict), *((root, find_verdict(root)) for root in roots)]
    tried = [(strategy, *each) for each in about for strategy in CAUSES[each[1].cause].fixes]
    for strategy, each, why in (*tried, *((strategy, case, verdict) for strategy in FOR_EVERY_CAUSE)):
        for fix in strategy(each, why):
            if not fix.edits or proof.can_be_typed(case, fix):
                yield fix


def _completed(recorded: Recorded, case: Case, first: Fix) -> Fix | None:
    """Return a fix with all that the failing line needs beside it; None if something cannot be mended."""
    parts = [first]
    while len(parts) <= MOST_PARTS:
        left = _left(recorded, case, parts)
        if left is None:
            return _joined(case, _needed(recorded, case, parts))
        more = _next_part(recorded, left, parts)
        if more is None:
            return None
        parts.append(more)
    return None


def _needed(recorded: Recorded, case: Case, parts: list[Fix]) -> list[Fix]:
    """Return the parts without those that a later one made superfluous, as it moves what theirs was made from."""
    for part in parts[:-1]:
        others = [each for each in parts if each is not part]
        if _left(recorded, case, others) is None:
            parts = others
    return parts


def _left(recorded: Recorded, case: Case, parts: list[Fix]) -> Case | None:
    """Return the case of the next tensor that would still be on the odd device, None if all are together."""
    replay = Replay(recorded, case, proof.all_moved(parts))
    if replay.conflict is not None:
        return _about(case, replay.conflict.op, replay.conflict.rows)
    rows = about_to_fail.rows_of_the_line(case, replay.there)
    return _about(case, case.op, rows) if rows else None


def _about(case: Case, op: int, rows: tuple[int, ...]) -> Case:
    mismatch = replace(case.mismatch, op=op, odd_tensor=rows[0], others_on_odd_device=rows[1:])
    return Case.of(case.queries, case.snapshot, mismatch)


def _next_part(recorded: Recorded, left: Case, parts: list[Fix]) -> Fix | None:
    """Return the first suggestion that moves the tensor and is none that is there already."""
    known = {moved.row for part in parts for moved in part.moved}
    suggested = itertools.islice(_suggested(left, find_verdict(left)), MOST_TRIES)
    usable = (fix for fix in suggested if fix.edits and any(moved.row not in known for moved in fix.moved))
    for fix in usable:
        conflict = Replay(recorded, left, proof.all_moved([*parts, fix])).conflict
        if conflict is None or left.odd_tensor not in conflict.rows or conflict.op != left.op:
            return fix
    return None


def _joined(case: Case, parts: list[Fix]) -> Fix | None:
    edits = merged([edit for part in parts for edit in part.edits])
    whole = Fix(parts[0].help, edits, proof.all_moved(parts)) if edits else None
    return whole if whole is not None and proof.can_be_typed(case, whole) else None
