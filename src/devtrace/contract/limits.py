"""What broke a limit of a test: findings, and lines that no rule speaks of, which become findings of their own."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from devtrace.contract.entries import Entry, in_order
from devtrace.diagnosis.findings import Finding, ReportData, Site
from devtrace.words.catalogue import sentence

COUNTED: Final = {"syncs": "syncs-unexpected.got", "copies": "copies-unexpected.got"}


def entries_of_test(report: ReportData, test: str, broken: Mapping[str, int]) -> list[Entry]:
    """Return the findings of a test that failed; `broken` has the most that each broken limit allows."""
    found = [Entry(each, _limit(each, broken), test) for each in report.findings]
    known = {(entry.limit.partition("=")[0], _line(entry.finding.site)) for entry in found if entry.limit}
    added = [
        Entry(finding, f"{name}={broken[name]}", test)
        for name in COUNTED
        if name in broken
        for finding in _lines(report, name, broken[name])
        if (name, _line(finding.site)) not in known
    ]
    return in_order([*found, *added])


def _limit(finding: Finding, broken: Mapping[str, int]) -> str:
    of_rule = "syncs" if finding.rule == "host-sync" else "copies" if finding.rule.endswith("-copy") else ""
    name = next((name for name in (of_rule, f"{finding.severity}s") if name in broken), "")
    return f"{name}={broken[name]}" if name else ""


def _lines(report: ReportData, name: str, most: int) -> Iterator[Finding]:
    """Yield a finding for each line that waits or copies."""
    for row in report.ledger:
        count: int = getattr(row, name)
        if count:
            message = sentence("limit.message", found=sentence(COUNTED[name], count=count), most=most)
            yield Finding("expectation", "error", "unknown", site=row.site, count=count, message=message)


def _line(site: Site | None) -> Site | None:
    return site and replace(site, column=-1, end_line=-1, end_column=-1, function="", text="")
