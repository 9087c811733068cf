"""Findings as a gate takes them: with the limit that each broke, and the test that it is of.

JSON, SARIF, annotations and the exit code are made of the same entries, in the same order: what broke a limit first.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from devtrace.contract.levels import FAIL_ON
from devtrace.diagnosis.findings import SEVERITIES, Finding, from_json, to_json, worst_first
from devtrace.diagnosis.slugs import Severity


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
    """Return findings, each with whether it is what the command is to fail on."""
    worst = FAIL_ON[: FAIL_ON.index(fail_on) + 1] if fail_on else ()
    return in_order(Entry(each, f"--fail-on {fail_on}" if each.severity in worst else "") for each in findings)


def in_order(entries: Iterable[Entry]) -> list[Entry]:
    """Sort by level alone: a report has the largest first."""
    return sorted(entries, key=lambda entry: SEVERITIES.index(entry.level))


def read_entries(data: Iterable[Mapping[str, Any]]) -> list[Entry]:
    """Return entries that were written, of several reports, the largest of each level first."""
    entries = [Entry(from_json(each), each["limit"], each["test"]) for each in data]
    rank = {id(finding): number for number, finding in enumerate(worst_first(entry.finding for entry in entries))}
    return in_order(sorted(entries, key=lambda entry: rank[id(entry.finding)]))


def worth_showing(entries: Iterable[Entry], *, notes: bool = False) -> list[Entry]:
    """Return what a reviewer is shown: notes only where they are asked for, or broke a limit."""
    return [entry for entry in entries if notes or entry.level != "note"]
