"""Rounds of a program: run, take the first error's fix, run with it, until no device error is left or nothing helps."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypedDict

from devtrace.diagnosis.findings import Finding, Site
from devtrace.fixing.compared import MOST_NAMES, Compared, ReferenceRun
from devtrace.fixing.program import Place
from devtrace.fixing.program import ProgramRun as ProgramRun
from devtrace.fixing.source_text import SourceText
from devtrace.source.user_code import import_name_of, owner_of, package_of
from devtrace.words.catalogue import comma, sentence
from devtrace.words.errors import UsageError

MOST_ROUNDS: Final = 20
_OF_AN_EDIT: Final = (
    "NameError", "AttributeError", "UnboundLocalError", "KeyError", "TypeError", "IndexError", "RecursionError",
)  # fmt: skip
"""Errors that a wrong edit raises where the program had none."""


class Refusal(TypedDict):
    """Change that is none: what it would have done, and what its run showed."""

    help: str
    why: str


@dataclass(frozen=True)
class Change:
    """A finding that was fixed in a round, and the text of its files before and after.

    `counts` is how often the program paid without and with it, if it is of a cost. `refused` were tried before it.
    """

    finding: Finding
    before: Mapping[str, SourceText]
    after: Mapping[str, SourceText]
    counts: tuple[int, int] | None = None
    refused: Sequence[Refusal] = ()


@dataclass
class Rounds:
    """Runs and changes so far. `left` is the device error that no fix helps, `last` the run of the present texts."""

    run: Callable[[Mapping[str, SourceText], frozenset[str]], ProgramRun]  # the second: packages that are as one's own
    read: Callable[[str], SourceText]
    most: int = MOST_ROUNDS
    reference: ReferenceRun | None = None
    announce: Callable[[Rounds, frozenset[str]], None] = lambda rounds, own: None
    only_first: bool = False  # end where the first error is past, and its twins
    changes: list[Change] = field(default_factory=list)
    runs: list[ProgramRun] = field(default_factory=list)
    left: Finding | None = None
    why_left: str = ""
    refused: Sequence[Refusal] = ()  # of what is left
    last: ProgramRun = field(init=False)
    compared: Compared | None = None  # the last run with the reference

    @property
    def texts(self) -> dict[str, SourceText]:
        """Return the files that the changes are in, as the last of these left them."""
        return {file: text for change in self.changes for file, text in change.after.items()}

    @property
    def is_proven(self) -> bool:
        """Return whether the texts as they are now were run, and no device error was left."""
        return self.left is None and bool(self.runs) and self.last.error is None

    @property
    def is_of_memory(self) -> bool:
        return any(change.finding.holders for change in self.changes)

    @property
    def registered(self) -> list[Finding]:
        """Return the findings whose changes let an optimizer find more: values differ from then on."""
        return [each.finding for each in self.changes if each.finding.trains]

    def go(self) -> None:
        """Run until no device error is left; what was patched is then held against the reference."""
        self._descend()
        if self.is_proven and self.changes and self.last.ending == "ended" and self.reference is not None:
            self.compared = self.reference.compared(self.last, self.is_of_memory)
            if not self.compared.is_proof or self._pays_at_its_lines():
                self._look_for_a_better_one(self.reference, self.compared)
        self._grade()

    def _descend(self) -> None:
        while len(self.runs) < self.most:
            self.run_once()
            if why := self._why_the_last_change_is_none():
                is_changed = self._take_the_next(self.changes.pop(), why)
            elif self.changes and self.only_first and not _are_twins(self.changes[0].finding, self.last.error):
                return
            else:
                is_changed = self.last.error is not None and self._take(self.last.error)
            if not is_changed:
                return

    def _why_the_last_change_is_none(self) -> str:
        """Return why the last fix cannot stay, as the run with it shows; empty if it helped."""
        if not self.changes:
            return ""
        change, last = self.changes[-1], self.last
        if last.error is not None:
            return sentence("fix.no-help") if _is_of(change, last.error) else ""
        is_of_an_edit = last.ending == "raised" and last.raised.startswith(_OF_AN_EDIT)
        is_in_its_lines = not {*changed_lines(change)}.isdisjoint(last.lines)
        return sentence("fix.another-error", raised=last.raised) if is_of_an_edit and is_in_its_lines else ""

    def _take_the_next(self, change: Change, why: str) -> bool:
        """Apply the next fix of a finding whose first one is none; return whether there is one."""
        finding, refused = change.finding, [*change.refused, Refusal(help=change.finding.help, why=why)]
        for at, choice in enumerate(finding.others):
            other = replace(finding, help=choice.help, edits=choice.edits, others=finding.others[at + 1 :])
            if not self.apply(other, refused):
                return True
        self.left, self.why_left, self.refused = finding, why, refused
        return False

    def difference(self, compared: Compared) -> str:
        """Say what the last run shows; layers that a change registers are trained from now on."""
        if not (self.registered and compared.is_alike and compared.differing):
            return str(compared)
        layers = sorted({f"`{_name(finding).partition('[')[0]}`" for finding in self.registered})
        return sentence("fix.compared-trained", layers=layers, names=comma().join(compared.differing[:MOST_NAMES]))

    def _pays_at_its_lines(self) -> bool:
        """Return whether the lines of a patch copy or wait again and again, which another place might spare."""
        changed = {place for change in self.changes for place in changed_lines(change)}
        paid = (
            each.site for each in self.last.findings if each.count > 1 and (each.severity == "warning" or each.edits)
        )
        return any(site is not None and (site.file, site.cell, site.line) in changed for site in paid)

    def _look_for_a_better_one(self, reference: ReferenceRun, compared: Compared) -> None:
        """Try the other fixes of what was changed, the last change first; the patch that differs least stays."""
        changes, rounds = self.changes, len(self.runs)
        best = compared, changes, self.last
        for number in reversed(range(len(changes))):
            finding = changes[number].finding
            for choice in finding.others if len(self.runs) < self.most else ():
                self.changes, self.left = changes[:number], None
                if not self.apply(replace(finding, help=choice.help, edits=choice.edits, others=())):
                    self._descend()
                    other = reference.compared(self.last, self.is_of_memory)
                    if self.is_proven and other.rank < best[0].rank:
                        best = other, self.changes, self.last
        self.compared, self.changes, self.last = best
        self.left, self.why_left = None, ""
        del self.runs[rounds:]  # they led to no other round

    def _grade(self) -> None:
        """Say of each change that was run what came of it; the last was not if its own error is the last."""
        is_proof = self.compared is not None and self.compared.is_proof
        proof = self.difference(self.compared) if self.compared is not None else sentence("fix.compared-nothing")
        is_last_run = self.left is not None or self.last.error is None
        for number, change in enumerate(self.changes if is_last_run else self.changes[:-1]):
            edits = tuple(replace(each, grade="proven" if is_proof else "tried") for each in change.finding.edits)
            self.changes[number] = replace(change, finding=replace(change.finding, edits=edits, proof=proof))

    @property
    def unmended(self) -> str:
        """Return a sentence where packages were changed in memory: as they are installed, the program still fails."""
        packages = sorted({package_of(file) for file in self.texts if owner_of(file) == "package"})
        return sentence("fix.packages-left", packages=packages, count=len(packages)) if packages else ""

    def run_once(self, own: frozenset[str] = frozenset()) -> None:
        self.announce(self, own)
        self.last = self.run(self.texts, own)
        self.runs.append(self.last)

    def run_without_the_last_change(self) -> ProgramRun:
        """Run the texts as they were before the last change once more."""
        without = replace(self, changes=self.changes[:-1])
        self.announce(replace(self, changes=[]), frozenset())
        self.runs.append(self.run(without.texts, frozenset()))
        return self.runs[-1]

    def _take(self, error: Finding) -> bool:
        """Apply the fix of an error; return whether there is one that fits."""
        if not error.edits:
            error = self._with_edits_of_packages(error)
        misfit = self.apply(error) if error.edits else sentence("fix.no-edit")
        if misfit:
            self.left, self.why_left = error, misfit
        return not misfit

    def apply(self, finding: Finding, refused: Sequence[Refusal] = ()) -> str:
        """Change the texts as a finding's edits say; return why that cannot be, if it cannot."""
        texts = self.texts
        before = {file: texts.get(file) or self.read(file) for file in {edit.file for edit in finding.edits}}
        try:
            after = {
                file: text.edited(edit for edit in finding.edits if edit.file == file) for file, text in before.items()
            }
        except UsageError as misfit:
            return str(misfit)
        self.changes.append(Change(finding, before, after, refused=refused))
        return ""

    def _with_edits_of_packages(self, error: Finding) -> Finding:
        """Return an error with the edits that it would have if the packages on its way were the user's own."""
        packages = _packages_of(error, self.last)
        if not packages or len(self.runs) >= self.most:
            return error
        self.run_once(packages)
        same = self.last.error
        return replace(error, edits=same.edits, help=same.help) if same is not None and same.edits else error


def changed_lines(change: Change) -> Iterator[Place]:
    """Yield the lines that a change made in the new texts."""
    for file, text in change.after.items():
        for cell in text.cell_numbers:
            yield from ((file, cell, line) for lines in changed_blocks(change, file, cell) for line in lines)


def changed_blocks(change: Change, file: str, cell: int | None = None) -> Iterator[range]:
    """Yield the blocks of lines that a change made in a text, or a cell of it; of a removal, the line behind it."""
    for kind, _, _, first, end in opcodes(change, file, cell):
        if kind != "equal":
            yield range(first + 1, max(end, first + 1) + 1)


def lines_after(change: Change, file: str, line: int, cell: int | None = None) -> range:
    """Return where a line of the text before a change is after it: all lines of what replaces it."""
    for kind, old, old_end, new, end in opcodes(change, file, cell):
        if old < line <= old_end:
            at = new + line - old
            return range(at, at + 1) if kind == "equal" else range(new + 1, max(end, new + 1) + 1)
    return range(line, line + 1)


def opcodes(change: Change, file: str, cell: int | None) -> Sequence[tuple[str, int, int, int, int]]:
    if file not in change.after:
        return []
    before, after = change.before[file].lines_in(cell), change.after[file].lines_in(cell)
    return difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()


def _packages_of(error: Finding, run: ProgramRun) -> frozenset[str]:
    """Return the import names of the installed packages whose lines an error came by."""
    sites: list[Site | None] = [error.site, *(line.site for line in error.lines)]
    if error.culprit is not None:
        sites += [error.culprit.born, error.culprit.moved, *error.culprit.chain]
    files = [*(site.file for site in sites if site is not None), *(file for file, _, _ in run.lines)]
    return frozenset(import_name_of(file) for file in files if owner_of(file) == "package")


def _is_of(change: Change, error: Finding) -> bool:
    """Return whether an error is what a change was for: of the same tensor at the same statement. Lines may have moved.

    Twins have all but their lines in common. A tensor that comes from a line of the change is no other one for that.
    """
    one = change.finding
    if (one.rule, where(one), _name(one)) != (error.rule, where(error), _name(error)):
        return False
    (site, born), (site_now, born_now) = _sites(one), _sites(error)
    return _is_at(change, site, site_now) and (_is_made_by(change, born_now) or _is_at(change, born, born_now))


def _are_twins(one: Finding, error: Finding | None) -> bool:
    """Return whether an error is one that was mended, at another line of the same cell or function."""
    if error is None or one.site is None or error.site is None:
        return False
    here, there = ((site.file, site.cell, site.function) for site in (one.site, error.site))
    return here == there and one.rule == error.rule and (_name(one) == _name(error) or bool(one.holders))


def _sites(error: Finding) -> tuple[Site | None, Site | None]:
    return error.site, error.culprit.born if error.culprit is not None else None


def _is_made_by(change: Change, born: Site | None) -> bool:
    return born is not None and any(born.line in block for block in changed_blocks(change, born.file, born.cell))


def _is_at(change: Change, before: Site | None, after: Site | None) -> bool:
    if before is None or after is None:
        return before is after
    is_there = after.line in lines_after(change, before.file, before.line, before.cell)
    return is_there and (before.file, before.cell) == (after.file, after.cell)


def where(finding: Finding) -> tuple[str, str, str]:
    site = finding.site
    return (site.file, site.function, site.text) if site is not None else ("", "", "")


def _name(finding: Finding) -> str:
    """Return the name of the tensor, or of what holds most of a memory."""
    holder = finding.holders[0].name if finding.holders else ""
    return finding.culprit.name if finding.culprit is not None else holder
