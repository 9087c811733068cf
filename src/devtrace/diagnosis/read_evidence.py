"""Evidence inferred from the source of a program without a recording: verdicts on it are only probable."""

from typing import Final

from devtrace.diagnosis.evidence.mismatch_case import MismatchCase, Verdict
from devtrace.diagnosis.evidence.source_text import only_assignment
from devtrace.diagnosis.findings import Site
from devtrace.diagnosis.slugs import CauseSlug

_BY_HOOKS: Final[tuple[CauseSlug, ...]] = ("attached-after-move", "not-registered")
"""Causes whose moves and attachments the hooks see, recorded or not."""


def is_only_read(case: MismatchCase, verdict: Verdict) -> bool:
    """Return whether a verdict rests on the source alone, without evidence from hooks."""
    may_be_read = verdict.kind not in _BY_HOOKS or case.queries.certainty(case.row) == "inferred"
    return may_be_read and not case.queries.evidence.saw_ops


def birth_by_name(case: MismatchCase) -> Site | None:
    """Return the line that assigned a tensor's name, as `x = load(file)`, if its creation is unknown."""
    queries = case.queries
    if queries.of == "device" or queries.evidence.saw_ops:
        return None
    for name in sorted(case.names, key=lambda each: len(each.references)):
        is_own = name.last.kind == "attribute"
        given = only_assignment(queries, name.last.owner, name.last.key) if is_own else None
        if given is not None:
            return given.code.site_of(given.statement)
        bound = case.binding_of(name) if not is_own else None
        if bound is not None:
            return bound[0].code.site_of(bound[1])
    return None
