"""Rounds of a program: run, apply the first error's fix, run again, until no device error is left or no fix helps."""

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
_ERRORS_OF_WRONG_EDITS: Final = (
    "NameError", "AttributeError", "UnboundLocalError", "KeyError", "TypeError", "IndexError", "RecursionError",
)  # fmt: skip
"""Errors that a program may raise because an edit is wrong."""


class Refusal(TypedDict):
    """A fix that was tried and taken back: what it would have done, and why it failed."""

    help: str
    why: str


@dataclass(frozen=True)
class Change:
    """A finding that was fixed in a round, and the text of its files before and after.

    `counts` is how often the program paid without and with the fix of a cost. `refused` were tried before it.
    """

    finding: Finding
    before: Mapping[str, SourceText]
    after: Mapping[str, SourceText]
    counts: tuple[int, int] | None = None
    refused: Sequence[Refusal] = ()


@dataclass
class Rounds:
    """Runs and changes so far. `left` is the device error that no fix helps, `last` the run of the present texts."""

    run: Callable[[Mapping[str, SourceText], frozenset[str]], ProgramRun]  # second: packages treated as user code
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
        """Return the findings whose fix gives an optimizer more to train: values differ from then on."""
        return [change.finding for change in self.changes if change.finding.trains]

    def go(self) -> None:
        """Run until no device error is left, then compare the patched run with the reference."""
        self._run_rounds()
        if self.is_proven and self.changes and self.last.ending == "ended" and self.reference is not None:
            self.compared = self.reference.compared(self.last, self.is_of_memory)
            if not self.compared.is_proof or self._has_costs_at_changed_lines():
                self._try_other_fixes(self.reference, self.compared)
        self._grade_changes()

    def _run_rounds(self) -> None:
        while len(self.runs) < self.most:
            self.run_once()
            if why := self._why_last_change_fails():
                is_changed = self._apply_next_choice(self.changes.pop(), why)
            elif self.changes and self.only_first and not _are_twins(self.changes[0].finding, self.last.error):
                return
            else:
                is_changed = self.last.error is not None and self._apply_fix_of(self.last.error)
            if not is_changed:
                return

    def _why_last_change_fails(self) -> str:
        """Return why the last fix cannot stay, as the run with it shows; "" if it can."""
        if not self.changes:
            return ""
        change, last_run = self.changes[-1], self.last
        if last_run.error is not None:
            return sentence("fix.no-help") if _is_error_still_there(change, last_run.error) else ""
        is_error_of_edit = last_run.ending == "raised" and last_run.raised.startswith(_ERRORS_OF_WRONG_EDITS)
        is_from_its_lines = not {*changed_lines(change)}.isdisjoint(last_run.lines)
        return sentence("fix.another-error", raised=last_run.raised) if is_error_of_edit and is_from_its_lines else ""

    def _apply_next_choice(self, change: Change, why: str) -> bool:
        """Apply the next fix of a finding whose fix has failed; return whether one fits."""
        finding, refused = change.finding, [*change.refused, Refusal(help=change.finding.help, why=why)]
        for index, choice in enumerate(finding.others):
            alternative = replace(finding, help=choice.help, edits=choice.edits, others=finding.others[index + 1 :])
            if not self.apply(alternative, refused):
                return True
        self.left, self.why_left, self.refused = finding, why, refused
        return False

    def difference(self, compared: Compared) -> str:
        """Say how the last run compares; if layers are trained only now, say that values differ for this."""
        if not (self.registered and compared.is_alike and compared.differing):
            return str(compared)
        layers = sorted({f"`{_name(finding).partition('[')[0]}`" for finding in self.registered})
        return sentence("fix.compared-trained", layers=layers, names=comma().join(compared.differing[:MOST_NAMES]))

    def _has_costs_at_changed_lines(self) -> bool:
        """Return whether changed lines copy or wait again and again, which another fix might avoid."""
        changed_places = {place for change in self.changes for place in changed_lines(change)}
        sites = (
            cost.site for cost in self.last.findings if cost.count > 1 and (cost.severity == "warning" or cost.edits)
        )
        return any(site is not None and (site.file, site.cell, site.line) in changed_places for site in sites)

    def _try_other_fixes(self, reference: ReferenceRun, compared: Compared) -> None:
        """Try the other fixes of what was changed, the last change first; the patch that differs least stays."""
        changes, run_count = self.changes, len(self.runs)
        best, best_changes, best_run = compared, changes, self.last
        for index in reversed(range(len(changes))):
            finding = changes[index].finding
            for choice in finding.others if len(self.runs) < self.most else ():
                self.changes, self.left = changes[:index], None
                if not self.apply(replace(finding, help=choice.help, edits=choice.edits, others=())):
                    self._run_rounds()
                    comparison = reference.compared(self.last, self.is_of_memory)
                    if self.is_proven and comparison.rank < best.rank:
                        best, best_changes, best_run = comparison, self.changes, self.last
        self.compared, self.changes, self.last = best, best_changes, best_run
        self.left, self.why_left = None, ""
        del self.runs[run_count:]  # these trials are no rounds

    def _grade_changes(self) -> None:
        """Grade each change that was run, with the comparison as its proof; a last one that was not run gets none."""
        is_proof = self.compared is not None and self.compared.is_proof
        proof = self.difference(self.compared) if self.compared is not None else sentence("fix.compared-nothing")
        has_last_change_run = self.left is not None or self.last.error is None
        for index, change in enumerate(self.changes if has_last_change_run else self.changes[:-1]):
            edits = tuple(replace(edit, grade="proven" if is_proof else "tried") for edit in change.finding.edits)
            self.changes[index] = replace(change, finding=replace(change.finding, edits=edits, proof=proof))

    @property
    def unmended(self) -> str:
        """Return a sentence if packages were changed in memory: with the installed ones the program still fails."""
        packages = sorted({package_of(file) for file in self.texts if owner_of(file) == "package"})
        return sentence("fix.packages-left", packages=packages, count=len(packages)) if packages else ""

    def run_once(self, own_packages: frozenset[str] = frozenset()) -> None:
        self.announce(self, own_packages)
        self.last = self.run(self.texts, own_packages)
        self.runs.append(self.last)

    def run_without_the_last_change(self) -> ProgramRun:
        """Run the texts as they were before the last change once more."""
        without = replace(self, changes=self.changes[:-1])
        self.announce(replace(self, changes=[]), frozenset())
        self.runs.append(self.run(without.texts, frozenset()))
        return self.runs[-1]

    def _apply_fix_of(self, error: Finding) -> bool:
        """Apply the first fix of an error; return whether it has one that fits."""
        if not error.edits:
            error = self._with_edits_of_packages(error)
        misfit = self.apply(error) if error.edits else sentence("fix.no-edit")
        if misfit:
            self.left, self.why_left = error, misfit
        return not misfit

    def apply(self, finding: Finding, refused: Sequence[Refusal] = ()) -> str:
        """Apply a finding's edits to the texts; return why they do not fit, "" if they do."""
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
        """Return an error with the edits that it has once the packages that it passed are treated as user code."""
        packages = _packages_of_error(error, self.last)
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
    """Yield the line numbers of each changed block in the new text, or its cell; of a removal, the line below."""
    for kind, _, _, first, end in opcodes(change, file, cell):
        if kind != "equal":
            yield range(first + 1, max(end, first + 1) + 1)


def lines_after(change: Change, file: str, line: int, cell: int | None = None) -> range:
    """Return where a line of the old text is in the new one: all lines that replace it if the change did."""
    for kind, old, old_end, new, end in opcodes(change, file, cell):
        if old < line <= old_end:
            new_line = new + line - old
            return range(new_line, new_line + 1) if kind == "equal" else range(new + 1, max(end, new + 1) + 1)
    return range(line, line + 1)


def opcodes(change: Change, file: str, cell: int | None) -> Sequence[tuple[str, int, int, int, int]]:
    if file not in change.after:
        return []
    before, after = change.before[file].lines_in(cell), change.after[file].lines_in(cell)
    return difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()


def _packages_of_error(error: Finding, run: ProgramRun) -> frozenset[str]:
    """Return the import names of installed packages that an error, or its tensor, passed through."""
    sites: list[Site | None] = [error.site, *(line.site for line in error.lines)]
    if error.culprit is not None:
        sites += [error.culprit.born, error.culprit.moved, *error.culprit.chain]
    files = [*(site.file for site in sites if site is not None), *(file for file, _, _ in run.lines)]
    return frozenset(import_name_of(file) for file in files if owner_of(file) == "package")


def _is_error_still_there(change: Change, error: Finding) -> bool:
    """Return whether an error is the one that a change should mend: of the same tensor at the same statement.

    Lines may have moved. A tensor that a line of the change now makes counts as the same tensor.
    """
    mended = change.finding
    if (mended.rule, where(mended), _name(mended)) != (error.rule, where(error), _name(error)):
        return False
    (site, born), (site_now, born_now) = _site_and_birth(mended), _site_and_birth(error)
    return _is_same(change, site, site_now) and (_is_born_in(change, born_now) or _is_same(change, born, born_now))


def _are_twins(mended: Finding, error: Finding | None) -> bool:
    """Return whether an error is like a mended one, at another line of the same cell or function."""
    if error is None or mended.site is None or error.site is None:
        return False
    here, there = ((site.file, site.cell, site.function) for site in (mended.site, error.site))
    return here == there and mended.rule == error.rule and (_name(mended) == _name(error) or bool(mended.holders))


def _site_and_birth(error: Finding) -> tuple[Site | None, Site | None]:
    return error.site, error.culprit.born if error.culprit is not None else None


def _is_born_in(change: Change, born: Site | None) -> bool:
    return born is not None and any(born.line in block for block in changed_blocks(change, born.file, born.cell))


def _is_same(change: Change, before: Site | None, after: Site | None) -> bool:
    """Return whether a site is the same as one before a change, whose line may have moved with it."""
    if before is None or after is None:
        return before is after
    is_there = after.line in lines_after(change, before.file, before.line, before.cell)
    return is_there and (before.file, before.cell) == (after.file, after.cell)


def where(finding: Finding) -> tuple[str, str, str]:
    site = finding.site
    return (site.file, site.function, site.text) if site is not None else ("", "", "")


def _name(finding: Finding) -> str:
    """Return the name of the tensor, or of what holds the most memory."""
    holder = finding.holders[0].name if finding.holders else ""
    return finding.culprit.name if finding.culprit is not None else holder
