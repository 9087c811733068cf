"""A way to make an edit, and why it has its rank among the others."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from devtrace.diagnosis.evidence.case import Case, Verdict
from devtrace.diagnosis.fixes.fix import Fix
from devtrace.diagnosis.slugs import CauseSlug

Strategy = Callable[[Case, Verdict], Iterator[Fix]]


class Ranked(NamedTuple):
    """A strategy at its rank: the causes that it is for, and why it comes no later."""

    strategy: Strategy
    causes: tuple[CauseSlug, ...]
    why: str
