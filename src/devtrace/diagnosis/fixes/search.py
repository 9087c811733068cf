"""Picks the fix of a mismatch: tries each strategy's edits in order, and keeps the first with which the line would run.

One tensor after the other is put on the expected device until the failing op, and the line around it, would run. What
an edit would break on the way there is put right with it, as one fix of several edits. Where that fails: words.
"""

import itertools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, NamedTuple

from devtrace.diagnosis.edits import merged
from devtrace.diagnosis.evidence.mismatch_case import MismatchCase, Verdict
from devtrace.diagnosis.evidence.source_text import statement_site
from devtrace.diagnosis.evidence.trace_queries import META
from devtrace.diagnosis.findings import Choice
from devtrace.diagnosis.fixes import proof
from devtrace.diagnosis.fixes.fix import Fix, Ranked
from devtrace.diagnosis.fixes.order import FOR_EVERY_CAUSE, of_cause
from devtrace.diagnosis.fixes.pass_device_to_factory import pass_device_to_factory
from devtrace.diagnosis.fixes.replay import RecordedSteps, Replay, rows_of_callers, rows_of_the_line
from devtrace.diagnosis.slugs import ADVICE
from devtrace.features import find
from devtrace.source.user_code import OWN_PACKAGES
from devtrace.trace.ids import OpId, TensorId
from devtrace.words.catalogue import sentence

MOST_PARTS: Final = 8
MOST_TRIES: Final = 8
MOST_CHOICES: Final = 5


class Candidate(NamedTuple):
    """A fix that a strategy offers; `refusal` says why it cannot stand at its lines, empty if it can."""

    ranked: Ranked
    fix: Fix
    refusal: str


@dataclass(frozen=True)
class Search:
    """Search for a fix of one mismatch. The causes tell the verdict on a tensor that comes up on the way."""

    case: MismatchCase
    verdict: Verdict
    find_verdict: Callable[[MismatchCase], Verdict]

    @cached_property
    def _recorded(self) -> RecordedSteps:
        return RecordedSteps(self.case.queries)

    def fix(self) -> Fix:
        """Return the first fix for the cause that is proven; advice alone where none is."""
        case = self.case
        if case.in_a_replica:
            return Fix(sentence("fixed.for-replicas"))
        if case.mismatch.of == "gradient":
            advice = sentence("fixed.for-gradient", expected=case.expected_trait)
            return next(pass_device_to_factory(case, self.verdict), Fix(advice))
        is_at_rest = self.verdict.cause == "asked-at-rest"
        if is_at_rest and self.verdict.asked is None:
            return Fix(sentence("fixed.for-hook", module=self.verdict.module_text))
        if case.odd_trait == META and not is_at_rest:
            return next(pass_device_to_factory(case, self.verdict), Fix(sentence("fixed.for-meta")))
        if "complex" in case.odd_trait and "complex" not in case.expected_trait:
            return Fix(sentence("fixed.for-complex"))
        if case.mismatch.of == "complex":
            return Fix(sentence("fixed.for-real"))
        advice = sentence(ADVICE[self.verdict.cause], expected=case.expected_trait)
        most = MOST_CHOICES if OWN_PACKAGES in os.environ else 1  # which a round of `devtrace fix` has, and may need
        proven = (fix for fix, _, _ in self.judged() if fix is not None)
        fixes, words = itertools.tee(proven)  # in words: what is a package's line is not the user's to change
        with_edits = {fix.edits: fix for fix in itertools.islice((fix for fix in fixes if fix.edits), most)}
        first, *others = with_edits.values() or [next(words, Fix(advice))]
        equal = (fix for fix in others if fix.trains or not first.trains)  # no other could stand for its training
        return replace(first, others=tuple(Choice(fix.help, fix.edits) for fix in equal))

    def judged(self) -> Iterator[tuple[Fix | None, Candidate, str]]:
        """Yield each candidate with the whole fix that comes of it, or None and why: the first is taken."""
        for offer in self.candidates(self.case, self.verdict):
            fix = self.completed(offer.fix) if not offer.refusal else None
            yield fix, offer, offer.refusal or ("" if fix is not None else "the line would mix devices all the same")

    def candidates(self, case: MismatchCase, verdict: Verdict) -> Iterator[Candidate]:
        """Yield the strategies' candidates for a tensor, in order, each judged by itself."""
        if not case.moment.frames and not case.names:
            return
        is_state = any(reference.kind == "state" for name in case.names for reference in name.references)
        roots = case.cases_of_roots if not is_state else []  # a restored state is cast to where its parameter is
        pairs = [(case, verdict), *((root, self.find_verdict(root)) for root in roots)]
        own = [(ranked, *pair) for pair in pairs for ranked in of_cause(pair[1].cause, case.queries.by.name)]
        known = set[Fix]()
        for ranked, subject, claim in (*own, *((ranked, case, verdict) for ranked in FOR_EVERY_CAUSE)):
            for fix in ranked.strategy(subject, claim):
                if fix not in known:
                    known.add(fix)
                    yield Candidate(ranked, fix, proof.refusal(case, fix) if fix.edits else "")

    def completed(self, first: Fix) -> Fix | None:
        """Return a fix with all that the failing line needs beside it; None if something cannot be mended."""
        parts = [first]
        while first.edits and len(parts) <= MOST_PARTS:
            odd_case = self._next_odd_case(parts)
            if odd_case is None:
                return self._joined([*self._without_superfluous(parts), *self._part_for_callers(parts)])
            part = self._next_part(odd_case, parts)
            if part is None:
                return None
            parts.append(part)
        return None if first.edits else first

    def _part_for_callers(self, parts: list[Fix]) -> list[Fix]:
        """Return the part that moves what a caller's line adds the result to, if one is found."""
        rows = rows_of_callers(self.case, self._replay(self.case, parts).there)
        part = self._next_part(self._case_at(self.case.op, rows), parts) if rows else None
        return [part] if part is not None else []

    def _without_superfluous(self, parts: list[Fix]) -> list[Fix]:
        """Return the parts without those that a later one replaces, as it moves what their tensors are made of."""
        for part in parts[:-1]:
            others = [other for other in parts if other is not part]
            if self._next_odd_case(others) is None:
                parts = others
        return parts

    def _next_odd_case(self, parts: list[Fix]) -> MismatchCase | None:
        """Return the case of the next tensor that would still be on the odd device, None if all are together."""
        replay = self._replay(self.case, parts)
        if replay.conflict is not None:
            return self._case_at(replay.conflict.op, replay.conflict.rows)
        rows = rows_of_the_line(self.case, replay.there)
        return self._case_at(self.case.op, rows) if rows else None

    def _replay(self, case: MismatchCase, parts: list[Fix]) -> Replay:
        kind: type[Replay] = find("replay", case.queries.by.name) or Replay
        return kind(self._recorded, case, proof.all_moved(parts))

    def _case_at(self, op: OpId, rows: tuple[TensorId, ...]) -> MismatchCase:
        mismatch = replace(self.case.mismatch, op=op, odd_tensor=rows[0], others_of_odd_trait=rows[1:])
        return MismatchCase.of(self.case.queries, self.case.moment, mismatch)

    def _next_part(self, odd_case: MismatchCase, parts: list[Fix]) -> Fix | None:
        """Return the first new candidate that moves the tensor."""
        known = {moved.row for part in parts for moved in part.moved}
        accepted = (each.fix for each in self.candidates(odd_case, self.find_verdict(odd_case)) if not each.refusal)
        for fix in itertools.islice(accepted, MOST_TRIES):
            if not fix.edits or all(moved.row in known for moved in fix.moved):
                continue
            conflict = self._replay(odd_case, [*parts, fix]).conflict
            if conflict is None or odd_case.odd_tensor not in conflict.rows or conflict.op != odd_case.op:
                return replace(fix, because=self._reason_to_move_too(odd_case))
        return None

    def _reason_to_move_too(self, odd_case: MismatchCase) -> str:
        """Say why a further tensor has to move: where it is, or which line would fail after the first edit."""
        name = self.find_verdict(odd_case).name.text or odd_case.name.text
        site = statement_site(self.case.queries, self.case.queries.op_user(odd_case.op))
        if odd_case.op == self.case.op or site is None:
            return sentence("fixed.too", name=name, odd=odd_case.odd_trait)
        return sentence("fixed.too-at", name=name, odd=odd_case.odd_trait, site=site)

    def _joined(self, parts: list[Fix]) -> Fix | None:
        edits = merged([edit for part in parts for edit in part.edits])
        help, written = parts[0].help, {*parts[0].edits}
        for part in parts[1:]:
            if not written.issuperset(part.edits):  # one line may move what several tensors are made of
                help = sentence("fixed.with", help=help, why=part.because, more=part.help)
            written.update(part.edits)
        whole = replace(parts[0], help=help, edits=edits, moved=proof.all_moved(parts), because="") if edits else None
        return whole if whole is not None and not proof.refusal(self.case, whole) else None
