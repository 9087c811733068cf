"""Fixes of costs, once no device error is left: each is kept if the program then computes the same for less.

Less is counted, not timed: fewer copies or waits that need not be, and of all together no more than before.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from devtrace.diagnosis.findings import Finding
from devtrace.fixing.compared import MOST_NAMES, ComparedPeak, Unsteady
from devtrace.fixing.rounds import ProgramRun, Rounds, where
from devtrace.words.catalogue import comma, sentence


@dataclass
class Costs:
    """Rounds for a program's costs. `rejected` are findings whose fix was not proven, and why."""

    rounds: Rounds
    rejected: list[tuple[Finding, str]] = field(default_factory=list)
    unsteady: Unsteady = field(default_factory=Unsteady)

    def go(self) -> None:
        """Try one fix after the other on top of those that were kept."""
        while len(self.rounds.runs) < self.rounds.most:
            finding = next(self._untried_findings(), None)
            if finding is None:
                return
            if why := self.why_not(finding):
                self.rejected.append((finding, why))

    def _untried_findings(self) -> Iterator[Finding]:
        rejected = {_key(finding) for finding, _ in self.rejected}
        for finding in self.rounds.last.findings:
            is_caught = finding.rule == "dtype-mismatch"  # an error that the program goes on from costs nothing
            if finding.severity != "error" and not is_caught and finding.edits and _key(finding) not in rejected:
                yield finding

    def why_not(self, finding: Finding) -> str:
        """Apply a fix and run it; return why it was taken back, an empty text if it was kept."""
        before = self.rounds.last
        if misfit := self.rounds.apply(finding):
            return misfit
        self.rounds.run_once()
        why = self._why_not_better(finding, before, self.rounds.last)
        if why:
            self.rounds.changes.pop()
            self.rounds.last = before
            return why
        paid, pays = total(before, finding.rule), total(self.rounds.last, finding.rule)
        if pays >= paid:  # as many as before, but fewer that need not be
            paid, pays = needless(before, finding.rule), needless(self.rounds.last, finding.rule)
        proven = _with_proof(finding, (paid, pays), before, self.rounds.last)
        self.rounds.changes[-1] = replace(self.rounds.changes[-1], finding=proven, counts=(paid, pays))
        return ""

    def _why_not_better(self, finding: Finding, before: ProgramRun, after: ProgramRun) -> str:
        if after.ending != before.ending or after.error is not None:
            return sentence("fix.cost-ends", raised=after.raised)
        if not before.comparable:
            return sentence("fix.cost-no-values")
        if finding.holders and not ComparedPeak.of(before, after).falls:
            return sentence("fix.cost-peak")
        fewer = needless(after, finding.rule) < needless(before, finding.rule)
        if not fewer or (total(after) > total(before) and not finding.holders):
            return sentence("fix.cost-not-less")
        names = self._changed_values(before, after)
        return sentence("fix.cost-values", names=comma().join(names[:MOST_NAMES])) if names else ""

    def _changed_values(self, before: ProgramRun, after: ProgramRun) -> list[str]:
        """Return the values that a fix changed, and that are the same in every run without it."""
        changed = self.unsteady.differing(before, after)
        if changed and len(self.rounds.runs) < self.rounds.most:
            self.unsteady.learn(before, self.rounds.run_without_the_last_change())
            changed = self.unsteady.differing(before, after)
        return changed


def needless(run: ProgramRun, rule: str) -> int:
    """Return how often a run paid what it need not have, as far as one rule sees."""
    return sum(
        finding.count
        for finding in run.findings
        if finding.rule == rule and (finding.severity == "warning" or (finding.edits and finding.severity == "note"))
    )


def total(run: ProgramRun, rule: str = "") -> int:
    """Return how often a run paid at all: for all rules, or for one."""
    return sum(cost.count for cost in run.findings if cost.severity != "error" and cost.rule.startswith(rule))


def _with_proof(finding: Finding, counts: tuple[int, int], before: ProgramRun, after: ProgramRun) -> Finding:
    """Return a finding whose edits are proven, with the proof in words: what the runs without and with them paid."""
    paid, pays = counts
    if finding.holders:
        proof = sentence("fix.compared-growth", count=before.comparable, **ComparedPeak.of(before, after).sizes)
    else:
        proof = sentence("fix.compared-cost", count=before.comparable, fewer=paid - pays, before=paid, after=pays)
    return replace(finding, edits=tuple(replace(edit, grade="proven") for edit in finding.edits), proof=proof)


def _key(finding: Finding) -> tuple[str, str, str, str]:
    return finding.rule, *where(finding)
