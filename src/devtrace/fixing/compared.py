"""A patched program held against another run: the same values and printed text, for no more copies and waits.

A proof's other run is the reference: the program as it was, with one memory for all devices, so that it ends although
the bug is there. A cost's other run is the program without the fix. What runs of one text do not share does not count.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from devtrace.fixing import values
from devtrace.fixing.program import ProgramRun
from devtrace.runtime.observers import LEAST
from devtrace.words.catalogue import comma, sentence
from devtrace.words.text_format import format_memory

MOST_NAMES = 3


@dataclass
class Unsteady:
    """Names of values that differ between two runs of the same text; `output`: what they print differs, too."""

    names: set[str] = field(default_factory=set)
    output: bool = False

    def learn(self, run: ProgramRun, second_run: ProgramRun) -> None:
        self.names.update(values.differing(run.values, second_run.values))
        self.output |= not values.is_same_output(run.output, second_run.output)

    def differing(self, before: ProgramRun, after: ProgramRun) -> list[str]:
        """Return the names of values that differ, and words for the output if that does; unsteady ones do not count."""
        names = [name for name in values.differing(before.values, after.values) if name not in self.names]
        is_same_output = self.output or values.is_same_output(before.output, after.output)
        return names if is_same_output else [*names, sentence("fix.cost-output")]


@dataclass
class ReferenceRun:
    """Run of the unpatched program on one memory: made when a patched run ends well, again if a value differs."""

    run: Callable[[], ProgramRun]
    unsteady: Unsteady = field(default_factory=Unsteady)
    first: ProgramRun | None = None
    _is_run_again: bool = False

    def compared(self, patched: ProgramRun, of_memory: bool = False, may_differ: bool = False) -> Compared:
        if self.first is None:
            self.first = self.run()
        differing = self.unsteady.differing(self.first, patched)
        exception_type = self.first.raised.partition(":")[0]
        ends_alike = (self.first.ending, exception_type) == (patched.ending, patched.raised.partition(":")[0])
        if differing and ends_alike and not (self._is_run_again or may_differ):
            self._is_run_again = True
            self.unsteady.learn(self.first, self.run())
            differing = self.unsteady.differing(self.first, patched)
        more_crossings = patched.crossings - self.first.crossings
        peak = ComparedPeak.of(self.first, patched) if of_memory else None
        raised = "" if ends_alike else exception_type or self.first.ending
        return Compared(raised, tuple(differing), self.first.comparable, more_crossings, peak)


@dataclass(frozen=True)
class ComparedPeak:
    """Peak bytes of a device without and with a fix of its memory; 0: too little for a curve of its memory."""

    device: str
    before: int
    after: int

    @classmethod
    def of(cls, before: ProgramRun, after: ProgramRun) -> ComparedPeak:
        """Compare the runs on the device whose peak falls most."""
        device = max(before.peaks, key=lambda name: before.peaks[name] - after.peaks.get(name, 0), default="")
        return cls(device, before.peaks.get(device, 0), after.peaks.get(device, 0))

    @property
    def falls(self) -> bool:
        return self.after < self.before

    @property
    def sizes(self) -> dict[str, str]:
        after = format_memory(self.after) if self.after else sentence("fix.less-than", size=format_memory(LEAST))
        return {"device": self.device, "before": format_memory(self.before), "after": after}


@dataclass(frozen=True)
class Compared:
    """Comparison of a patched run with the reference: it has `more` copies and waits, and `count` values were compared.

    A fix of memory has a `peak`, too; it is proven only if that falls.
    """

    raised: str  # by the reference alone, if it ends otherwise
    differing: tuple[str, ...]
    count: int
    more: int
    peak: ComparedPeak | None = None

    @property
    def is_alike(self) -> bool:
        return not self.raised

    @property
    def is_proof(self) -> bool:
        has_same_values = self.is_alike and not self.differing and self.count > 0
        return has_same_values and (self.peak is None or self.peak.falls)

    @property
    def rank(self) -> tuple[bool, bool, int]:
        """Lowest for the best of several patches."""
        return not self.is_alike, bool(self.differing), self.more

    def __str__(self) -> str:
        if not self.is_alike:
            return sentence("fix.compared-ends", raised=self.raised)
        if self.differing:
            return sentence("fix.compared-values", names=comma().join(self.differing[:MOST_NAMES]))
        if not self.count:
            return sentence("fix.cost-no-values")
        if self.peak is not None:
            key = "fix.compared-memory" if self.peak.falls else "fix.compared-peak"
            return sentence(key, count=self.count, more=max(self.more, 0), **self.peak.sizes)
        return sentence("fix.compared", count=self.count)
