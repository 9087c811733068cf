"""The report as a fragment of html: findings in words and the static timeline, for wherever nothing of ours can run.

No script and no style, so that what cleans html (GitHub, nbviewer) leaves it as it is; the page's own colours and
fonts; no text from the trace is taken for markup. The words need only the few tags that every cleaner knows, and come
before the picture: a cleaner that knows no svg leaves them whole (JupyterLab's in an untrusted notebook), and what
nbconvert's shows of it as text is not seen.
"""

import re
from collections.abc import Iterable
from typing import Final

from devtrace.diagnosis.findings import Finding, Line, ReportData, Site
from devtrace.features import find
from devtrace.report import parts
from devtrace.words.catalogue import family, sentence
from devtrace.words.text_format import escape_markup, safe_line, short_op_name

MOST_FINDINGS: Final = 20
LONGEST_MESSAGE: Final = 2_000


def fragment(report: ReportData, *, picture: bool = True) -> str:
    """Write findings, worst first, then the summary, then the timeline."""
    shown = parts.shown(report)
    findings = "".join(_finding(report, number, finding) for number, finding in shown[:MOST_FINDINGS])
    hidden = len(shown) - MOST_FINDINGS
    rest = [sentence("report.more", count=hidden)] if hidden > 0 else []
    timeline = _picture(report) if picture else ""
    end = _divs(map(_markup, [*rest, *parts.summary(report)]))
    job_notes = _divs(map(_markup, parts.of_the_job(report)))
    findings = f"<ol>\n{findings}</ol>\n" if findings else ""
    findings = f"{job_notes}\n{findings}" if job_notes else findings
    return f'<div data-devtrace="report" data-op-count="{len(report.trace.ops)}">\n{findings}{end}\n{timeline}\n</div>'


def _picture(report: ReportData) -> str:
    draw = find("picture", "static")
    svg = draw(report.trace, parts.curves_of_limits(report)) if draw is not None else ""
    return _HIDING_TEXT.format(svg) if svg else ""


_HIDING_TEXT: Final = (
    '<a class="jp-InternalAnchorLink"><div class="jp-text-truncated jp-RenderedHTMLCommon">{}</div></a>'
)
"""Classes of JupyterLab, which pages of nbconvert have too: they hide text, keep it to one line, and give it its ink.

An svg shows in them all the same, as it says that it is visible. So a cleaner that makes text of its tags, and keeps
classes, leaves an empty line. Elsewhere the classes are nobody's.
"""


_SEVERITIES: Final = family("severity.*", "severity.error", "severity.warning", "severity.note")


def _finding(report: ReportData, number: int, finding: Finding) -> str:
    times, op, devices = parts.headline(finding, report.trace)
    details = " · ".join(escape_markup(part) for part in (times, short_op_name(op), devices) if part)
    site = finding.site
    where = f"<b>{escape_markup(parts.where(site))}</b>{_code(site) if site and site.text else ''}"
    lines = [f"{where} &ensp; {details}", *map(_labelled_line, finding.lines)]
    lines += (f"<b>{label}</b> {_markup(words)}" for label, words in parts.advice(finding).items())
    severity = escape_markup(sentence(_SEVERITIES[finding.severity]))
    return (
        f'<li value="{number}" title="{severity}" data-devtrace="finding" data-rule="{escape_markup(finding.rule)}" '
        f'data-severity="{finding.severity}">\n'
        f"<div>{_markup(finding.message)}</div>\n<blockquote>\n{_divs(lines)}\n</blockquote>\n</li>\n"
    )


def _divs(lines: Iterable[str]) -> str:
    """Write lines below each other; the line breaks keep words apart even where every tag is taken away."""
    return "\n".join(f"<div>{line}</div>" for line in lines)


def _labelled_line(line: Line) -> str:
    beside = f" &ensp; {_markup(line.remark)}" if line.remark else ""
    return f"<b>{escape_markup(line.label)}</b> {escape_markup(str(line.site))}{_code(line.site)}{beside}"


def _code(site: Site) -> str:
    return f" &ensp; <code>{escape_markup(safe_line(site.text))}</code>"


def _markup(text: str) -> str:
    """Turn a sentence of ours into html; what is between backticks is code."""
    escaped = escape_markup(text, LONGEST_MESSAGE).replace("\n", "</div>\n<div>")
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escaped)
