"""Rounds of a program: run, take the first error's fix, run with it, until no device error is left or nothing helps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from devtrace.diagnosis.findings import Finding
from devtrace.fixing.source_text import SourceText
from devtrace.words.catalogue import sentence
from devtrace.words.errors import UsageError

Ending = Literal["ended", "raised", "time", "signal"]
MOST_ROUNDS: Final = 20
_OF_AN_EDIT: Final = ("NameError", "AttributeError", "UnboundLocalError", "KeyError", "TypeError", "IndexError")
"""Errors that a wrong edit raises where the program had none."""


@dataclass(frozen=True)
class Run:
    """One run: how it ended, the exception if one ended it, and what devtrace found."""

    ending: Ending
    findings: tuple[Finding, ...]
    raised: str = ""
    lines: tuple[tuple[str, int], ...] = ()  # where the exception passed through: files and lines

    @property
    def error(self) -> Finding | None:
        """Return the first device error, by the order of the program."""
        errors = [finding for finding in self.findings if finding.severity == "error"]
        return min(errors, key=lambda finding: finding.op, default=None)


@dataclass(frozen=True)
class Change:
    """A finding that was mended in a round, and the text of its files before and after."""

    finding: Finding
    before: Mapping[str, SourceText]
    after: Mapping[str, SourceText]


@dataclass
class Rounds:
    """Runs and changes so far. `left` is the device error that no fix mends, `last` the last run."""

    run: Callable[[Mapping[str, SourceText]], Run]
    read: Callable[[str], SourceText]
    most: int = MOST_ROUNDS
    texts: dict[str, SourceText] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    left: Finding | None = None
    why_left: str = ""

    @property
    def last(self) -> Run:
        return self.runs[-1]

    @property
    def is_proven(self) -> bool:
        """Return whether the texts as they are now were run, and no device error was left."""
        return self.left is None and bool(self.runs) and self.last.error is None

    def go(self) -> None:
        while len(self.runs) < self.most:
            self.runs.append(self.run(self.texts))
            if self._last_change_broke_it():
                self._take_back(sentence("fix.another-error", raised=self.last.raised))
                return
            error = self.last.error
            if error is None:
                return
            if self.changes and _is_same(error, self.changes[-1].finding):
                self._take_back(sentence("fix.no-help"))
                return
            if not self._take(error):
                return

    def _take(self, error: Finding) -> bool:
        """Apply the fix of an error; return whether there is one that fits."""
        if not error.edits:
            self.left, self.why_left = error, sentence("fix.no-edit")
            return False
        files = {edit.file for edit in error.edits}
        before = {file: self.texts.get(file) or self.read(file) for file in files}
        try:
            after = {
                file: text.edited(edit for edit in error.edits if edit.file == file) for file, text in before.items()
            }
        except UsageError as misfit:
            self.left, self.why_left = error, str(misfit)
            return False
        self.texts.update(after)
        self.changes.append(Change(error, before, after))
        return True

    def _take_back(self, why: str) -> None:
        change = self.changes.pop()
        self.left, self.why_left = change.finding, why
        first = {file for earlier in self.changes for file in earlier.after}
        for file, text in change.before.items():
            if file in first:
                self.texts[file] = text
            else:
                del self.texts[file]

    def _last_change_broke_it(self) -> bool:
        """Return whether the last fix made a new error: the run raised no device error, and in a line of the fix."""
        if not self.changes or self.last.ending != "raised" or self.last.error is not None:
            return False
        change = self.changes[-1]
        changed = {(file, line) for file in change.after for line in _changed_lines(change, file)}
        return self.last.raised.startswith(_OF_AN_EDIT) and not changed.isdisjoint(self.last.lines)


def _changed_lines(change: Change, file: str) -> set[int]:
    before, after = change.before[file].lines, change.after[file].lines
    same = 0
    while same < min(len(before), len(after)) and before[same] == after[same]:
        same += 1
    ends = 0
    while ends < min(len(before), len(after)) - same and before[-1 - ends] == after[-1 - ends]:
        ends += 1
    return set(range(same + 1, len(after) - ends + 1))


def _is_same(one: Finding, other: Finding) -> bool:
    """Return whether two errors are of the same tensor at the same statement; lines may have moved."""
    return (one.rule, _where(one), _name(one)) == (other.rule, _where(other), _name(other))


def _where(finding: Finding) -> tuple[str, str, str]:
    site = finding.site
    return (site.file, site.function, site.text) if site is not None else ("", "", "")


def _name(finding: Finding) -> str:
    return finding.culprit.name if finding.culprit is not None else ""
