"""Findings that a program, a session or a project asks to be silent about: not shown, and counted in one line.

total += loss.item()    # devtrace: ignore[host-sync]
%devtrace ignore host-sync
[tool.devtrace]         ignore = ["host-sync"], baseline = "known.json" (which `devtrace run --json` wrote before)
"""

import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from devtrace.diagnosis.evidence.trace_queries import NOWHERE, TraceQueries
from devtrace.diagnosis.findings import Finding, Site, from_json
from devtrace.source.parsing import Span
from devtrace.words.catalogue import sentence
from devtrace.words.errors import named

_COMMENT: Final = re.compile(r"#\s*devtrace:\s*ignore(?:\[([\w\s,-]*)\])?")
_PROJECT: Final = "pyproject.toml"
by_session: Final[set[str]] = set()
"""Rules that `%devtrace ignore` silences."""


def unsilenced(queries: TraceQueries, findings: Iterable[Finding]) -> tuple[list[Finding], list[str]]:
    """Return the findings to show, and notes on how many are not and on settings that cannot be read.

    An error is never silent.
    """
    every = list(findings)
    rules, known, notes = _settings_of_the_project()
    settings = [_silencer(queries, each, rules, known) if each.severity != "error" else "" for each in every]
    shown = [finding for finding, setting in zip(every, settings, strict=True) if not setting]
    by, count = list(dict.fromkeys(filter(None, settings))), len(every) - len(shown)
    return shown, [*([sentence("note.silenced", count=count, by=by)] if count else []), *notes]


def _silencer(queries: TraceQueries, finding: Finding, rules: set[str], known: set[tuple[str, ...]]) -> str:
    """Return the setting that silences a finding; empty for none."""
    if finding.rule in by_session:
        return "`%devtrace ignore`"
    if finding.rule in rules:
        return f"`{_PROJECT}`"
    if finding.severity == "warning" and _identity(finding) in known:
        return sentence("note.baseline")
    return "`# devtrace: ignore`" if _has_comment(queries, finding) else ""


def _settings_of_the_project() -> tuple[set[str], set[tuple[str, ...]], list[str]]:
    """Return the rules and the known findings that the nearest pyproject.toml names, and a note on what is wrong."""
    import tomllib

    file = next((path for path in _project_files() if path.is_file()), None)
    try:
        tool = tomllib.loads(file.read_text("utf-8")).get("tool", {}) if file is not None else {}
        settings: dict[str, Any] = tool.get("devtrace", {})
        baseline = settings.get("baseline")
        findings = json.loads((file.parent / baseline).read_text("utf-8"))["findings"] if file and baseline else []
        known = {_identity(from_json(finding)) for finding in findings if finding["severity"] == "warning"}
        return set(settings.get("ignore", ())), known, []
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as fault:
        return set(), set(), [sentence("note.settings", file=_PROJECT, fault=named(fault))]


def _project_files() -> list[Path]:
    try:
        folder = Path.cwd()
    except OSError:  # the folder is gone
        return []
    return [parent / _PROJECT for parent in (folder, *folder.parents)]


def _identity(finding: Finding) -> tuple[str, ...]:
    """Return the identity of a finding, which stays when lines are added above it or the folder changes."""
    site = finding.site
    return (finding.rule, *((os.path.basename(site.file), site.function, site.text) if site is not None else ()))


def _has_comment(queries: TraceQueries, finding: Finding) -> bool:
    text = _text_around(queries, finding.site) if finding.site is not None else ""
    rules = [comment[1] for comment in _COMMENT.finditer(text)]  # None without brackets: all rules
    return any(listed is None or finding.rule in re.split(r"[\s,]+", listed) for listed in rules)


def _text_around(queries: TraceQueries, site: Site) -> str:
    """Return the lines of a site, and of its statement if that has no body of its own."""
    source, place = queries.read(site.file, site.line, site.cell_id), queries.node_at(site)
    span = Span(site.line, 0, max(site.end_line, site.line), 0)
    if place is not NOWHERE and not hasattr(place.statement, "body"):
        span = source.span(place.statement)
    return "\n".join(source.line(number) for number in range(span.line, span.end_line + 1))
