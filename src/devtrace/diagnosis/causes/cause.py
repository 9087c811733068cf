"""A cause: what it means, how a report words it, and what mends it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from devtrace.diagnosis.evidence.case import Case, Verdict
from devtrace.diagnosis.fixes.fix import Fix
from devtrace.diagnosis.slugs import CauseSlug

Predicate = Callable[[Case], Verdict | None]
Strategy = Callable[[Case, Verdict], Iterator[Fix]]


def no_reason(case: Case, verdict: Verdict) -> str:
    return ""


@dataclass(frozen=True)
class Cause:
    """Why a tensor is on the odd device.

    The predicates that claim a cause are functions of its file; `ordered.py` says when each is asked.
    """

    slug: CauseSlug
    meaning: str  # README's table
    what_helps: str  # README's table
    born_remark: str = ""  # in a report, beside the birth
    moved_remark: str = ""  # in a report, beside the move
    reason: Callable[[Case, Verdict], str] = no_reason  # a sentence of the message
    advice: str = ""  # the help where no strategy fits
    fixes: tuple[Strategy, ...] = ()  # in the order of preference of good PyTorch
