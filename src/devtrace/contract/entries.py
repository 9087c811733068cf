"""Findings as a gate takes them: with the limit that each broke, and the test that it is of.

JSON, SARIF, annotations and the exit code are made of the same entries, in the same order: what broke a limit first.
Lines that broke the limit of a test, and of which no rule speaks, become findings of their own.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from devtrace.contract.levels import FAIL_ON
from devtrace.diagnosis.findings import SEVERITIES, Finding, ReportData, Site, from_json, to_json, worst_first
from devtrace.diagnosis.slugs import Severity
from devtrace.words.catalogue import sentence


@dataclass(frozen=True, slots=True)
class Entry:
    """One finding; `limit` and `test` are "" where it broke none and is of no test."""

    finding: Finding
    limit: str = ""
    test: str = ""

    @property
    def level(self) -> Severity:
        """Return how a gate shows it: what broke a limit is an error."""
        return "error" if self.limit else self.finding.severity

    def to_json(self) -> dict[str, Any]:
        return {**to_json(self.finding), "level": self.level, "limit": self.limit, "test": self.test}


def entries_of(findings: Iterable[Finding], fail_on: str | None = None) -> list[Entry]:
    """Return an entry for each finding, with the limit `--fail-on warning` if the command is to fail on it."""
    limit, failing = f"--fail-on {fail_on}", FAIL_ON[: FAIL_ON.index(fail_on) + 1] if fail_on else ()
    return in_order(Entry(finding, limit if finding.severity in failing else "") for finding in findings)


def in_order(entries: Iterable[Entry]) -> list[Entry]:
    """Sort by level alone: a report has the largest first."""
    return sorted(entries, key=lambda entry: SEVERITIES.index(entry.level))


def read_entries(data: Iterable[Mapping[str, Any]]) -> list[Entry]:
    """Return entries that were written, of several reports, the largest of each level first."""
    entries = [Entry(from_json(values), values["limit"], values["test"]) for values in data]
    rank = {id(finding): place for place, finding in enumerate(worst_first(entry.finding for entry in entries))}
    return in_order(sorted(entries, key=lambda entry: rank[id(entry.finding)]))


def worth_showing(entries: Iterable[Entry], *, notes: bool = False) -> list[Entry]:
    """Return what a reviewer is shown: notes only where they are asked for, or broke a limit."""
    return [entry for entry in entries if notes or entry.level != "note"]


# Limits of tests.

COUNTED: Final = {"syncs": "syncs-unexpected.got", "copies": "copies-unexpected.got"}


def entries_of_test(report: ReportData, test: str, broken: Mapping[str, int]) -> list[Entry]:
    """Return the findings of a test that failed; `broken` has the most that each broken limit allows."""
    entries = [Entry(finding, _broken_limit(finding, broken), test) for finding in report.findings]
    explained = {(entry.limit.partition("=")[0], _line_alone(entry.finding.site)) for entry in entries if entry.limit}
    added = [
        Entry(finding, f"{name}={broken[name]}", test)
        for name in COUNTED
        if name in broken
        for finding in _findings_of_lines(report, name, broken[name])
        if (name, _line_alone(finding.site)) not in explained
    ]
    return in_order([*entries, *added])


def _broken_limit(finding: Finding, broken: Mapping[str, int]) -> str:
    """Return `syncs=0` for a sync if that limit is broken, else `warnings=3` for a warning; "" if none is."""
    counted = "syncs" if finding.rule == "host-sync" else "copies" if finding.rule.endswith("-copy") else ""
    name = next((name for name in (counted, f"{finding.severity}s") if name in broken), "")
    return f"{name}={broken[name]}" if name else ""


def _findings_of_lines(report: ReportData, name: str, most: int) -> Iterator[Finding]:
    """Yield a finding for each line that waits or copies."""
    for row in report.ledger:
        count: int = getattr(row, name)
        if count:
            message = sentence("limit.message", found=sentence(COUNTED[name], count=count), most=most)
            yield Finding("expectation", "error", "unknown", site=row.site, count=count, message=message)


def _line_alone(site: Site | None) -> Site | None:
    return site and replace(site, column=-1, end_line=-1, end_column=-1, function="", text="")
