"""A trace that carries its own report: findings and ledger are stored in it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, cast

import numpy as np

from devtrace.diagnosis.findings import MOST_OPS, Finding, LedgerRow, ReportData, Site, from_json, to_json
from devtrace.diagnosis.story import with_story
from devtrace.source.snapshot import Snapshot
from devtrace.trace.builder import TraceBuilder
from devtrace.trace.columns import LEDGER_COUNTS
from devtrace.trace.tables import Ints, TraceData, Values
from devtrace.words import language


def report_of(trace: TraceData) -> ReportData:
    """Return the report that a trace carries."""
    from devtrace.diagnosis.ledger import stored

    findings = tuple(_stored_finding(data, trace) for data in trace.findings or ())
    return ReportData(trace, findings, stored(trace), trace.notes)


def _stored_finding(data: Mapping[str, Any], trace: TraceData) -> Finding:
    """Return a stored finding; one of an older devtrace, which stored no lines, gets them now."""
    finding = from_json(data, lambda id: Site.of(trace.sites[id]) if 0 <= id < len(trace.sites) else None)
    return finding if finding.lines else with_story(finding)


def with_report(
    trace: TraceData,
    findings: Sequence[Finding],
    ledger: Sequence[LedgerRow],
    notes: Sequence[str],
    snapshot: Snapshot | None = None,
    **ending: Any,
) -> ReportData:
    """Return a report whose trace carries it. Sites that only findings refer to become rows of the trace."""
    ran_as = {cell.file: cell.count for cell in snapshot.cells} if snapshot is not None else {}
    findings = [finding if finding.lines else with_story(finding, ran_as) for finding in findings]
    sites = _Sites(trace)
    stored = tuple(to_json(replace(finding, ops=finding.ops[:MOST_OPS]), sites.id) for finding in findings)
    rows = [(sites.id(row.site), row) for row in ledger]
    strings, values = sites.extended()
    values["ledger"] = _ledger_columns(trace, rows)
    carrying = replace(
        trace,
        strings=strings,
        values=values,
        findings=stored,
        notes=(*trace.notes, *notes),
        language=language.current(),
        **ending,
    )
    return ReportData(carrying, tuple(findings), tuple(ledger), carrying.notes)


class _Sites:
    """Row ids of sites, old and new."""

    def __init__(self, trace: TraceData) -> None:
        self.trace = trace
        self._ids: dict[Site, int] = {}
        for id, row in enumerate(trace.sites):
            self._ids.setdefault(Site.of(row), id)
        self._new: list[Site] = []

    def id(self, site: Site | None) -> int:
        if site is None:
            return -1
        if site not in self._ids:
            self._ids[site] = len(self.trace.sites) + len(self._new)
            self._new.append(site)
        return self._ids[site]

    def extended(self) -> tuple[tuple[str, ...], dict[str, Any]]:
        """Return the trace's strings and tables with the new sites."""
        values = {name: dict(columns) for name, columns in self.trace.values.items()}
        if not self._new:
            return self.trace.strings, values
        builder = TraceBuilder()
        for text in self.trace.strings:
            builder.text(text)
        for site in self._new:
            builder.append("sites", **asdict(site))
        added = builder.build()
        for name in values["sites"]:
            columns = (self.trace.sites.ints(name), added.sites.ints(name))
            joined = cast(Ints, np.concatenate(columns))
            joined.flags.writeable = False
            values["sites"][name] = joined
        return added.strings, values


def _ledger_columns(trace: TraceData, rows: list[tuple[int, LedgerRow]]) -> dict[str, Values]:
    names = [str(device) for device in trace.devices]
    builder = TraceBuilder()
    for site, row in rows:
        builder.append(
            "ledger",
            site=site,
            ops=[row.ops.get(name, 0) for name in names],
            **{name: getattr(row, name) for name in LEDGER_COUNTS},
        )
    return dict(builder.build().values["ledger"])
