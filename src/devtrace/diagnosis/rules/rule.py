"""A rule: what counts as a finding."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from devtrace.diagnosis.evidence.failure_snapshot import FailureSnapshot
from devtrace.diagnosis.evidence.ranks import Ranks
from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.diagnosis.findings import Finding
from devtrace.diagnosis.ledger import Tally
from devtrace.diagnosis.slugs import RuleSlug
from devtrace.words.catalogue import sentence


@dataclass(frozen=True)
class Rule:
    slug: RuleSlug

    @property
    def meaning(self) -> str:
        return sentence(f"{self.slug}.meaning")


@dataclass(frozen=True)
class ErrorRule(Rule):
    """Explains an op that raised, or returns None if the error is of another rule."""

    explain: Callable[[TraceQueries, FailureSnapshot, int, str], Finding | None]  # the op, and torch's message


@dataclass(frozen=True)
class CostRule(Rule):
    """Finds sites that cost time, by the counts of the ledger."""

    find: Callable[[TraceQueries, Tally], Iterable[Finding]]


@dataclass(frozen=True)
class JobRule(Rule):
    """Finds what only the ranks of a job together show."""

    find: Callable[[TraceQueries, Ranks], Iterable[Finding]]
