"""Results of diagnosis as data: findings, culprits, sites, edits, ledger rows and the report that holds them.

    report.findings[0].culprit.name     "model.out_head.weight"

Diagnosis makes a report once; a trace that carries findings gives the same report back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from devtrace.diagnosis.slugs import CauseSlug, Certainty, RuleSlug, Severity
from devtrace.trace.rows import Site as SiteRow
from devtrace.trace.tables import TraceData
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import file_label

SEVERITIES: Final[tuple[Severity, ...]] = ("error", "warning", "note")
MOST_OPS: Final = 50


@dataclass(frozen=True, slots=True)
class Site:
    """A span of source: in a cell when `cell` is its execution count, else in a file."""

    file: str
    line: int
    column: int = -1
    end_line: int = -1
    end_column: int = -1
    function: str = ""
    text: str = ""
    cell: int | None = None
    cell_id: str = ""

    @classmethod
    def of(cls, row: SiteRow) -> Site:
        return cls(
            row.file,
            row.line,
            row.column,
            row.end_line,
            row.end_column,
            row.function,
            row.text,
            row.cell,
            row.cell_id,
        )

    def __str__(self) -> str:
        name = file_label(self.file) if self.cell is None else f"In[{self.cell}]"
        return sentence("site", name=name, line=self.line)


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of source that mends a finding: the lines `before`, which begin at `line`, become the lines `after`.

    With an empty `before`, `after` becomes new lines below `line`; 0 is the top.
    """

    file: str
    cell: int | None
    line: int
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Culprit:
    """A tensor, or a generator, on the wrong device."""

    name: str
    names: tuple[str, ...]
    device: str
    shape: tuple[int, ...]
    dtype: str
    born: Site | None = None
    moved: Site | None = None
    chain: tuple[Site, ...] = ()
    certainty: Certainty = "seen"


@dataclass(frozen=True, slots=True)
class Line:
    """A line of source beside a finding: a label in the reader's language, the site, a remark or nothing."""

    label: str
    site: Site
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """One rule's result at one site."""

    rule: RuleSlug
    severity: Severity
    cause: CauseSlug | Literal[""]
    devices: tuple[str, ...]
    site: Site | None
    op: int = -1
    culprit: Culprit | None = None
    count: int = 1
    bytes: int = 0
    message: str = ""
    help: str = ""
    edits: tuple[Edit, ...] = ()
    ops: tuple[int, ...] = ()
    lines: tuple[Line, ...] = ()


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """Exact counts of one site in user code; `ops` by device."""

    site: Site
    ops: Mapping[str, int]
    h2d: int = 0
    d2h: int = 0
    d2d: int = 0
    syncs: int = 0
    cpu_compute: int = 0
    bytes: int = 0

    @property
    def copies(self) -> int:
        return self.h2d + self.d2h + self.d2d


@dataclass(frozen=True)
class ReportData:
    """Findings and ledger of one trace."""

    trace: TraceData
    findings: tuple[Finding, ...] = ()
    ledger: tuple[LedgerRow, ...] = ()
    notes: tuple[str, ...] = ()


def to_json(finding: Finding, site_id: Callable[[Site | None], int]) -> dict[str, Any]:
    """Return a finding as the trace stores it: plain values, sites by their row id."""
    culprit = finding.culprit
    return {
        "rule": finding.rule,
        "severity": finding.severity,
        "cause": finding.cause,
        "devices": list(finding.devices),
        "site": site_id(finding.site),
        "op": finding.op,
        "culprit": culprit and _culprit_to_json(culprit, site_id),
        "count": finding.count,
        "bytes": finding.bytes,
        "message": finding.message,
        "help": finding.help,
        "edits": [_edit_to_json(edit) for edit in finding.edits],
        "ops": list(finding.ops[:MOST_OPS]),
        "lines": [{"label": each.label, "site": site_id(each.site), "remark": each.remark} for each in finding.lines],
    }


def _culprit_to_json(culprit: Culprit, site_id: Callable[[Site | None], int]) -> dict[str, Any]:
    return {
        "name": culprit.name,
        "names": list(culprit.names),
        "device": culprit.device,
        "shape": list(culprit.shape),
        "dtype": culprit.dtype,
        "born": site_id(culprit.born),
        "moved": site_id(culprit.moved),
        "chain": [site_id(site) for site in culprit.chain],
        "certainty": culprit.certainty,
    }


def _edit_to_json(edit: Edit) -> dict[str, Any]:
    cell = -1 if edit.cell is None else edit.cell
    return {"file": edit.file, "cell": cell, "line": edit.line, "before": edit.before, "after": edit.after}


def from_json(data: Mapping[str, Any], trace: TraceData) -> Finding:
    """Return a stored finding, its sites read from the trace."""
    culprit = data.get("culprit")
    return Finding(
        rule=data["rule"],
        severity=data["severity"],
        cause=data.get("cause", ""),
        devices=tuple(data.get("devices", ())),
        site=_site(data.get("site", -1), trace),
        op=data.get("op", -1),
        culprit=_culprit_from_json(culprit, trace) if culprit else None,
        count=data.get("count", 1),
        bytes=data.get("bytes", 0),
        message=data.get("message", ""),
        help=data.get("help", ""),
        edits=tuple(_edit_from_json(edit) for edit in data.get("edits", ())),
        ops=tuple(data.get("ops", ())),
        lines=tuple(_lines_from_json(data.get("lines", ()), trace)),
    )


def _lines_from_json(data: Iterable[Mapping[str, Any]], trace: TraceData) -> Iterator[Line]:
    for each in data:
        site = _site(each["site"], trace)
        if site is not None:
            yield Line(each["label"], site, each.get("remark", ""))


def _culprit_from_json(data: Mapping[str, Any], trace: TraceData) -> Culprit:
    chain = (_site(id, trace) for id in data.get("chain", ()))
    return Culprit(
        name=data["name"],
        names=tuple(data.get("names", ())),
        device=data.get("device", ""),
        shape=tuple(data.get("shape", ())),
        dtype=data.get("dtype", ""),
        born=_site(data.get("born", -1), trace),
        moved=_site(data.get("moved", -1), trace),
        chain=tuple(site for site in chain if site),
        certainty=data.get("certainty", "inferred"),
    )


def _edit_from_json(data: Mapping[str, Any]) -> Edit:
    cell = data.get("cell", -1)
    return Edit(data["file"], None if cell < 0 else cell, data["line"], data["before"], data["after"])


def _site(id: int, trace: TraceData) -> Site | None:
    return Site.of(trace.sites[id]) if 0 <= id < len(trace.sites) else None


def worst_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Sort by severity; within notes the costly ones first, then as the program ran."""
    order = {severity: rank for rank, severity in enumerate(SEVERITIES)}
    return tuple(
        sorted(
            findings,
            key=lambda f: (order[f.severity], -f.bytes if f.severity == "note" else 0, -f.count, f.op),
        )
    )
