"""A cause: what it means, how a report words it, and what mends it."""

from collections.abc import Callable
from dataclasses import dataclass

from devtrace.diagnosis.evidence.case import Case, Verdict
from devtrace.diagnosis.slugs import CauseSlug
from devtrace.words.catalogue import sentence

Predicate = Callable[[Case], Verdict | None]


def no_reason(case: Case, verdict: Verdict) -> str:
    return ""


@dataclass(frozen=True)
class Cause:
    """Why a tensor is on the odd device.

    The predicates that claim a cause are functions of its file; `ordered.py` says when each is asked.
    """

    slug: CauseSlug
    reason: Callable[[Case, Verdict], str] = no_reason  # a sentence of the message

    @property
    def meaning(self) -> str:
        return sentence(f"{self.slug}.meaning")

    @property
    def what_helps(self) -> str:
        return sentence(f"{self.slug}.helps")

    @property
    def created_remark(self) -> str:
        """Return the words beside the line that created the tensor."""
        return sentence(f"{self.slug}.created")

    @property
    def missed_remark(self) -> str:
        """Return the words beside the move that missed it."""
        return sentence(f"{self.slug}.missed")

    def advice(self, expected: str = "") -> str:
        """Return the help for where no strategy fits."""
        return sentence(f"{self.slug}.advice", expected=expected)
