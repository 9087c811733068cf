"""Rounds of a program: run, take the first error's fix, run with it, until no device error is left or nothing helps."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from devtrace.diagnosis.findings import Finding, Site
from devtrace.fixing.source_text import SourceText
from devtrace.source.user_code import import_name_of, owner_of
from devtrace.words.catalogue import sentence
from devtrace.words.errors import UsageError

Ending = Literal["ended", "raised", "time", "signal"]
MOST_ROUNDS: Final = 20
_OF_AN_EDIT: Final = ("NameError", "AttributeError", "UnboundLocalError", "KeyError", "TypeError", "IndexError")
"""Errors that a wrong edit raises where the program had none."""


@dataclass(frozen=True)
class Run:
    """One run: how it ended, the exception if one ended it, and what devtrace found, in the order of the program."""

    ending: Ending
    findings: tuple[Finding, ...]
    raised: str = ""
    lines: tuple[tuple[str, int], ...] = ()  # where the exception passed through: files and lines
    values: Mapping[str, Any] = field(default_factory=dict)  # that the program left, if costs are to be fixed
    output: str = ""

    @property
    def error(self) -> Finding | None:
        """Return the first device error."""
        return next((finding for finding in self.findings if finding.severity == "error"), None)


@dataclass(frozen=True)
class Change:
    """A finding that was fixed in a round, and the text of its files before and after.

    `counts` is how often the program paid without and with it, if it is of a cost.
    """

    finding: Finding
    before: Mapping[str, SourceText]
    after: Mapping[str, SourceText]
    counts: tuple[int, int] | None = None


@dataclass
class Rounds:
    """Runs and changes so far. `left` is the device error that no fix helps, `last` the run of the present texts."""

    run: Callable[[Mapping[str, SourceText], frozenset[str]], Run]  # the second: packages that are as one's own
    read: Callable[[str], SourceText]
    most: int = MOST_ROUNDS
    announce: Callable[[Rounds, frozenset[str]], None] = lambda rounds, own: None
    texts: dict[str, SourceText] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    left: Finding | None = None
    why_left: str = ""
    last: Run = field(init=False)

    @property
    def is_proven(self) -> bool:
        """Return whether the texts as they are now were run, and no device error was left."""
        return self.left is None and bool(self.runs) and self.last.error is None

    def go(self) -> None:
        while len(self.runs) < self.most:
            self.run_once()
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

    def run_once(self, own: frozenset[str] = frozenset()) -> None:
        self.announce(self, own)
        self.last = self.run(self.texts, own)
        self.runs.append(self.last)

    def run_without_the_last_change(self) -> Run:
        """Run the texts as they were before the last change once more."""
        texts = self._texts_before(self.changes[-1])
        self.announce(replace(self, changes=[]), frozenset())
        self.runs.append(self.run(texts, frozenset()))
        return self.runs[-1]

    def _take(self, error: Finding) -> bool:
        """Apply the fix of an error; return whether there is one that fits."""
        if not error.edits:
            error = self._with_edits_of_packages(error)
        if not error.edits:
            self.left, self.why_left = error, sentence("fix.no-edit")
            return False
        misfit = self.apply(error)
        if misfit:
            self.left, self.why_left = error, misfit
        return not misfit

    def apply(self, finding: Finding) -> str:
        """Change the texts as a finding's edits say; return why that cannot be, if it cannot."""
        files = {edit.file for edit in finding.edits}
        before = {file: self.texts.get(file) or self.read(file) for file in files}
        try:
            after = {
                file: text.edited(edit for edit in finding.edits if edit.file == file) for file, text in before.items()
            }
        except UsageError as misfit:
            return str(misfit)
        self.texts.update(after)
        self.changes.append(Change(finding, before, after))
        return ""

    def undo(self) -> Change:
        """Take the last change back."""
        self.texts = self._texts_before(self.changes[-1])
        return self.changes.pop()

    def _texts_before(self, change: Change) -> dict[str, SourceText]:
        first = {file for earlier in self.changes if earlier is not change for file in earlier.after}
        kept = {file: text for file, text in self.texts.items() if file in first or file not in change.before}
        return kept | {file: text for file, text in change.before.items() if file in first}

    def _with_edits_of_packages(self, error: Finding) -> Finding:
        """Return an error with the edits that it would have if the packages on its way were the user's own."""
        packages = _packages_of(error, self.last)
        if not packages or len(self.runs) >= self.most:
            return error
        self.run_once(packages)
        same = self.last.error
        return replace(error, edits=same.edits, help=same.help) if same is not None and same.edits else error

    def _take_back(self, why: str) -> None:
        self.left, self.why_left = self.undo().finding, why

    def _last_change_broke_it(self) -> bool:
        """Return whether the last fix made a new error: the run raised no device error, and in a line of the fix."""
        if not self.changes or self.last.ending != "raised" or self.last.error is not None:
            return False
        change = self.changes[-1]
        changed = {(file, line) for file in change.after for lines in changed_blocks(change, file) for line in lines}
        return self.last.raised.startswith(_OF_AN_EDIT) and not changed.isdisjoint(self.last.lines)


def changed_blocks(change: Change, file: str) -> Iterator[range]:
    """Yield the blocks of lines that a change made in the new text; a removal is the line that follows it."""
    for kind, _, _, first, end in _matcher(change, file).get_opcodes():
        if kind != "equal":
            yield range(first + 1, max(end, first + 1) + 1)


def line_after(change: Change, file: str, line: int) -> int:
    """Return where a line of the text before a change is after it."""
    for kind, old, old_end, new, _ in _matcher(change, file).get_opcodes():
        if old < line <= old_end:
            return new + (line - old if kind == "equal" else 1)
    return line


def _matcher(change: Change, file: str) -> difflib.SequenceMatcher[str]:
    return difflib.SequenceMatcher(None, change.before[file].lines, change.after[file].lines, autojunk=False)


def _packages_of(error: Finding, run: Run) -> frozenset[str]:
    """Return the import names of the installed packages whose lines an error came by."""
    sites: list[Site | None] = [error.site, *(line.site for line in error.lines)]
    if error.culprit is not None:
        sites += [error.culprit.born, error.culprit.moved, *error.culprit.chain]
    files = [*(site.file for site in sites if site is not None), *(file for file, _ in run.lines)]
    return frozenset(import_name_of(file) for file in files if owner_of(file) == "package")


def _is_same(one: Finding, other: Finding) -> bool:
    """Return whether two errors are of the same tensor at the same statement; lines may have moved."""
    return (one.rule, _where(one), _name(one)) == (other.rule, _where(other), _name(other))


def _where(finding: Finding) -> tuple[str, str, str]:
    site = finding.site
    return (site.file, site.function, site.text) if site is not None else ("", "", "")


def _name(finding: Finding) -> str:
    return finding.culprit.name if finding.culprit is not None else ""
