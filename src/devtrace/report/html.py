"""The report as a fragment of html: findings in words and the static timeline, for wherever nothing of ours can run.

No script and no style, so that what cleans html (GitHub, nbviewer) leaves it as it is; the page's own colours and
fonts; no text from the trace is taken for markup. The words need only the few tags that every cleaner knows, and come
before the picture: a cleaner that knows no svg leaves them whole (nbconvert's, JupyterLab's in an untrusted notebook).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from devtrace.diagnosis.findings import Finding, Line, ReportData, Site
from devtrace.drawing import palette
from devtrace.drawing.svg import timeline, without_loose_words
from devtrace.report import parts
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import escape_markup, safe_line, short_op_name

MOST_FINDINGS: Final = 20
LONGEST_MESSAGE: Final = 2_000


def fragment(report: ReportData, *, picture: bool = True) -> str:
    """Write findings, worst first, then the summary, then the timeline."""
    shown = parts.shown(report)
    findings = "".join(_finding(report, number, finding) for number, finding in shown[:MOST_FINDINGS])
    more = len(shown) - MOST_FINDINGS
    rest = [sentence("report.more", count=more)] if more > 0 else []
    drawn = without_loose_words(timeline(report.trace)) if picture else ""
    end = _rows(map(_marked_up, [*rest, *parts.summary(report)]))
    of_job = _rows(map(_marked_up, parts.of_the_job(report)))
    findings = f"{of_job}\n{findings}" if of_job else findings
    return f'<div data-devtrace="report" data-op-count="{len(report.trace.ops)}">\n{findings}{end}\n{drawn}\n</div>'


def _finding(report: ReportData, number: int, finding: Finding) -> str:
    times, op, devices = parts.headline(finding, report.trace)
    right = " · ".join(escape_markup(part) for part in (times, short_op_name(op), devices) if part)
    site = finding.site
    where = f"<b>{escape_markup(parts.where(site))}</b>{_code(site) if site and site.text else ''}"
    lines = [f"{where} &ensp; {right}", *map(_labelled, finding.lines)]
    if finding.help:
        lines.append(f"<b>{sentence('label.fix')}</b> {_marked_up(finding.help)}")
    return (
        f'<div data-devtrace="finding" data-rule="{escape_markup(finding.rule)}" data-severity="{finding.severity}">\n'
        f"<div>{_disc(number, finding)} {_marked_up(finding.message)}</div>\n"
        f"<blockquote>\n{_rows(lines)}\n</blockquote>\n</div>\n"
    )


def _rows(lines: Iterable[str]) -> str:
    """Write lines below each other; the line breaks keep words apart even where every tag is taken away."""
    return "\n".join(f"<div>{line}</div>" for line in lines)


def _disc(number: int, finding: Finding) -> str:
    """Draw the number that the finding's flag has in the picture."""
    fill, word = palette.severity(finding.severity), escape_markup(sentence(f"severity.{finding.severity}"))
    return without_loose_words(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="16" height="16" role="img" aria-label="{word}">'
        f'<circle cx="8" cy="8" r="8" fill="{fill}"/><text x="8" y="11.5" font-size="10" font-weight="700" '
        f'font-family="system-ui, sans-serif" text-anchor="middle" fill="#ffffff">{number}</text></svg>'
    )


def _labelled(line: Line) -> str:
    beside = f" &ensp; {escape_markup(line.remark)}" if line.remark else ""
    return f"<b>{escape_markup(line.label)}</b> {escape_markup(str(line.site))}{_code(line.site)}{beside}"


def _code(site: Site) -> str:
    return f" &ensp; <code>{escape_markup(safe_line(site.text))}</code>"


def _marked_up(text: str) -> str:
    """Turn a sentence of ours into html; what is between backticks is code."""
    shown = escape_markup(text, LONGEST_MESSAGE).replace("\n", "</div>\n<div>")
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", shown)
