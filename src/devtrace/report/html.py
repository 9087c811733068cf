"""The report as a fragment of html: findings in words and the static timeline, for wherever nothing of ours can run.

No script and no style, so that what cleans html (GitHub, nbviewer) leaves it as it is; the page's own colours and
fonts; every text from the trace is shown as text (`plain`).
"""

from __future__ import annotations

import re
from typing import Final

from devtrace.diagnosis.findings import Finding, ReportData, Site
from devtrace.drawing import palette
from devtrace.drawing.svg import timeline
from devtrace.report.text import places, summary
from devtrace.words.text_format import escape_markup, pluralize, safe_line, short_op_name

MOST_FINDINGS: Final = 20
LONGEST_MESSAGE: Final = 2_000


def fragment(report: ReportData, *, picture: bool = True) -> str:
    """Findings worst first, the timeline below, what was counted at the end."""
    shown = [(number, finding) for number, finding in enumerate(report.findings, 1) if finding.severity != "note"]
    findings = "".join(_finding(report, number, finding) for number, finding in shown[:MOST_FINDINGS])
    more = len(shown) - MOST_FINDINGS
    rest = f"<p>{pluralize(more, 'more finding')}</p>" if more > 0 else ""
    drawn = timeline(report.trace) if picture else ""
    end = "<br>".join(map(_said, summary(report)))
    return (
        f'<div data-devtrace="report" data-op-count="{len(report.trace.ops)}">\n'
        f"{findings}{rest}{drawn}\n<p><small>{end}</small></p>\n</div>"
    )


def _finding(report: ReportData, number: int, finding: Finding) -> str:
    op = short_op_name(report.trace.ops[finding.op].name) if 0 <= finding.op < len(report.trace.ops) else finding.rule
    times = f"{finding.count:,}×" if finding.count > 1 else ""
    right = " · ".join(escape_markup(part) for part in (times, op, " + ".join(finding.devices)) if part)
    lines = [_said(finding.message), *(_place(*place) for place in places(finding))]
    if finding.help:
        lines.append(f"<b>Fix</b> {_said(finding.help)}")
    return (
        f'<div data-devtrace="finding" data-rule="{escape_markup(finding.rule)}" data-severity="{finding.severity}">\n'
        f"<p>{_disc(number, finding)} {_source(finding.site)} &ensp; {right}</p>\n"
        f"<blockquote><p>{'<br>'.join(lines)}</p></blockquote>\n</div>\n"
    )


def _disc(number: int, finding: Finding) -> str:
    """The number that the finding's flag has in the picture."""
    fill = palette.severity(finding.severity)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="16" height="16" role="img" aria-label="{finding.severity}">'
        f'<circle cx="8" cy="8" r="8" fill="{fill}"/><text x="8" y="11.5" font-size="10" font-weight="700" '
        f'font-family="system-ui, sans-serif" text-anchor="middle" fill="#ffffff">{number}</text></svg>'
    )


def _source(site: Site | None) -> str:
    if site is None:
        return "<b>somewhere</b>"
    text = f" &ensp; <code>{escape_markup(safe_line(site.text))}</code>" if site.text else ""
    return f"<b>{escape_markup(str(site))}</b>{text}"


def _place(label: str, site: Site, remark: str) -> str:
    where = f"{escape_markup(str(site))} &ensp; <code>{escape_markup(safe_line(site.text))}</code>"
    return f"<b>{label}</b> {where}{f' &ensp; {escape_markup(remark)}' if remark else ''}"


def _said(text: str) -> str:
    """Words of ours, in which `code` stands between backticks."""
    shown = escape_markup(text, LONGEST_MESSAGE).replace("\n", "<br>")
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", shown)
