"""Findings that the program asks to be silent about, in a comment on the line or its statement.

total += loss.item()    # devtrace: ignore[host-sync]
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.diagnosis.findings import Finding, Site
from devtrace.source.parsing import Span
from devtrace.words.catalogue import sentence

_COMMENT: Final = re.compile(r"#\s*devtrace:\s*ignore(?:\[([\w\s,-]*)\])?")


def unsilenced(queries: TraceQueries, findings: Iterable[Finding]) -> tuple[list[Finding], list[str]]:
    """Return the findings to show, and a note on how many are not; an error is never silent."""
    every = list(findings)
    shown = [each for each in every if each.severity == "error" or not _is_silent(queries, each)]
    count = len(every) - len(shown)
    return shown, [sentence("note.silenced", count=count)] if count else []


def _is_silent(queries: TraceQueries, finding: Finding) -> bool:
    text = _text_around(queries, finding.site) if finding.site is not None else ""
    rules = [found[1] for found in _COMMENT.finditer(text)]
    return any(each is None or finding.rule in re.split(r"[\s,]+", each) for each in rules)


def _text_around(queries: TraceQueries, site: Site) -> str:
    """Return the lines of a site, and of its statement if that has no body of its own."""
    source, found = queries.read(site.file, site.line, site.cell_id), queries.node_at(site)
    if source is None:
        return ""
    span = Span(site.line, 0, max(site.end_line, site.line), 0)
    if found is not None and not hasattr(found.statement, "body"):
        span = source.span(found.statement)
    return "\n".join(source.line(number) for number in range(span.line, span.end_line + 1))
