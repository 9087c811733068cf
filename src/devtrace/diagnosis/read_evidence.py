"""Evidence that was read from the source of a program that nobody recorded: a verdict on it is only probable."""

from dataclasses import replace
from typing import Final

from devtrace.diagnosis.evidence.case import Case, Verdict
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.source_text import statement_site
from devtrace.diagnosis.findings import Site
from devtrace.diagnosis.fixes.fix import Fix
from devtrace.diagnosis.fixes.register_on_module import assignments
from devtrace.diagnosis.slugs import CauseSlug

_BY_HOOKS: Final[tuple[CauseSlug, ...]] = ("attached-after-move", "not-registered")
"""Causes whose moves and attachments the hooks see, recorded or not."""


def is_only_read(case: Case, verdict: Verdict) -> bool:
    """Return whether a verdict rests on what was read from the source, and not on what the hooks saw."""
    may_be_read = verdict.kind not in _BY_HOOKS or case.queries.certainty(case.row) == "inferred"
    return may_be_read and not case.queries.evidence.saw_ops


def without_guess(case: Case, verdict: Verdict, fix: Fix) -> Fix:
    return replace(fix, edits=()) if changes_a_guess(case, verdict, fix) else fix


def changes_a_guess(case: Case, verdict: Verdict, fix: Fix) -> bool:
    """Return whether a fix changes the line of a birth that only the source tells, in code that has ended.

    What an attribute of a live object is assigned to is no guess, where its class assigns it once; nor is a line of a
    function that still runs.
    """
    born = statement_site(case.queries, verdict.born)
    is_seen = verdict.cause == "not-registered" or case.queries.certainty(case.row) == "seen"
    if not fix.edits or born is None or is_seen:
        return False
    lines = range(born.line, max(born.end_line, born.line) + 1)
    guessed = any(edit.file == born.file and edit.cell == born.cell and edit.line in lines for edit in fix.edits)
    return guessed and case.snapshot.frame_of(born) is None and not _is_only_assignment(case, verdict, born)


def _is_only_assignment(case: Case, verdict: Verdict, born: Site) -> bool:
    last = verdict.name.last if verdict.name is not None else None
    if last is None or last.kind != "attribute" or not isinstance(last.key, str):
        return False
    given = list(assignments(case.queries, last.owner, last.key))
    spans = [(code.site.file, code.source.span(statement).line) for code, statement in given]
    return spans == [(born.file, born.line)]


def birth_by_name(case: Case) -> Site | None:
    """Return the line that gave a tensor's name its value, for a dtype whose birth was not read: `load(file)`."""
    queries = case.queries
    if queries.of == "device" or queries.evidence.saw_ops:
        return None
    for name in sorted(case.names, key=lambda each: len(each.references)):
        last, frame = name.last, FailingFrame.of(case.snapshot, name.frame, case.expected_device)
        is_own = last.kind == "attribute" and isinstance(last.key, str)
        given = list(assignments(queries, last.owner, str(last.key))) if is_own else []
        if len(given) == 1:
            return queries.site_in(given[0][0].source, given[0][1], given[0][0].site)
        bound = frame.bindings(name.references[0].text)[-1:] if frame is not None and not is_own else []
        if frame is not None and bound:
            return queries.site_in(frame.source, bound[0], frame.code.site)
    return None
