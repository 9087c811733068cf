"""The report: what diagnosis found in a trace, as data and as text.

    report.findings[0].culprit.name     "model.out_head.weight"
    print(report)                       what the terminal, the notebook's text/plain and the tests read

Diagnosis makes a report once; a trace that carries findings gives the same report back. The text form is the layout
that every other view follows: findings worst first, each with the line, the tensor, its birth, the move that missed it
and the fix.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from .trace import Site as SiteRow
from .trace import Trace

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

Severity = Literal["error", "warning", "note"]
Certainty = Literal["seen", "inferred"]

SEVERITIES: Final[tuple[Severity, ...]] = ("error", "warning", "note")
SIGNS: Final = {"error": "✗", "warning": "!", "note": "·"}
WIDTH: Final = 100
REMARK: Final = 68
"""The column where the remarks beside births and moves begin, if the source leaves room."""
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
        return f"{self.file.rsplit('/', 1)[-1] if self.cell is None else f'In[{self.cell}]'} line {self.line}"


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
    """The tensor (or generator) that is the odd one out."""

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
class Finding:
    """What one rule says of one site."""

    rule: str
    severity: Severity
    cause: str
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


@dataclass(frozen=True)
class Report:
    """The findings and the ledger of one trace."""

    trace: Trace
    findings: tuple[Finding, ...] = ()
    ledger: tuple[LedgerRow, ...] = ()
    notes: tuple[str, ...] = ()
    _text: list[str] = field(default_factory=list, repr=False, compare=False)

    @property
    def text(self) -> str:
        if not self._text:
            self._text.append(_text(self))
        return self._text[0]

    def to_html(self, path: str | Path) -> Path:
        """Write one file with all views, which opens offline."""
        from .page import to_html

        return to_html(self, path)

    def figure(self, kind: str, theme: Literal["light", "dark"] = "light") -> Figure:
        """A plotly Figure: "devices", "copies", "modules" or "memory"."""
        from .figures import figure

        return figure(self.trace, kind, theme)

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """A report that a cell ends with shows as it does below a traced cell."""
        from .display import mime_bundle

        return mime_bundle(self.trace, self)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        counts = Counter(finding.severity for finding in self.findings)
        said = ", ".join(count(counts[severity], severity) for severity in SEVERITIES if counts[severity])
        return f"<Report: {said or 'no findings'} of {self.trace!r}>"


def to_json(finding: Finding, site_id: Callable[[Site | None], int]) -> dict[str, Any]:
    """A finding as the trace stores it: plain values, sites by their row id."""
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


def from_json(data: Mapping[str, Any], trace: Trace) -> Finding:
    """A stored finding, its sites read from the trace."""
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
    )


def _culprit_from_json(data: Mapping[str, Any], trace: Trace) -> Culprit:
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


def _site(id: int, trace: Trace) -> Site | None:
    return Site.of(trace.sites[id]) if 0 <= id < len(trace.sites) else None


# The text form.

_REMARKS: Final[dict[str, tuple[str, str]]] = {
    # cause -> what to say beside the birth and beside the move
    "attached-after-move": ("after", "which could not see it"),
    "not-registered": ("not registered", "which passes it by"),
    "created-without-device": ("no device given", "which came by before"),
    "never-moved": ("never moved", "which left it behind"),
    "stale-copy": ("before the move", "which left it behind"),
    "wrong-device": ("put on this device", ""),
    "host-boundary": ("on the device", ""),
    "generator-device": ("on this device", ""),
    "default-device": ("by the default device", ""),
}


def size(bytes: int) -> str:
    """Bytes for people: 12 B, 3.4 KB, 1.2 GB."""
    amount = float(bytes)
    for unit in ("B", "KB", "MB", "GB"):
        if amount < 1000 or unit == "GB":
            return f"{amount:.0f} {unit}" if unit == "B" or amount >= 100 else f"{amount:.1f} {unit}"
        amount /= 1000
    raise AssertionError


def count(number: int, noun: str, plural: str = "") -> str:
    """1 copy, 1,204 copies."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def _text(report: Report) -> str:
    shown = [finding for finding in report.findings if finding.severity != "note"]
    blocks = ["\n".join(_finding_lines(finding, report.trace)) for finding in shown]
    return "\n\n".join([*blocks, "\n".join(line for told in summary(report) for line in _wrapped(told, ""))])


def summary(report: Report) -> list[str]:
    """What was counted and what could not be told, a sentence each."""
    return [_summary_line(report), *_rest_lines(report), *(f"devtrace: {note}" for note in report.notes)]


def _finding_lines(finding: Finding, trace: Trace) -> list[str]:
    lines = [_headline(finding, trace), *_wrapped(finding.message, "  ")]
    for label, site, remark in places(finding):
        lines += _place(label, site, remark)
    if finding.help:
        lines += _wrapped("Fix    " + finding.help, "  ", "         ")
    return lines


def _headline(finding: Finding, trace: Trace) -> str:
    op = trace.ops[finding.op].name if 0 <= finding.op < len(trace.ops) else finding.rule
    times = f"{finding.count:,}×" if finding.count > 1 else ""
    right = "   ".join(part for part in (times, _short(op, 40), " + ".join(finding.devices)) if part)
    where = f"{SIGNS[finding.severity]} {finding.site or 'somewhere'}"
    text = one_line(finding.site.text if finding.site else "")
    room = WIDTH - len(right) - len(where) - 6
    left = f"{where}   {_short(text, room)}" if room > 8 else where
    return f"{left:<{max(WIDTH - len(right), 0)}}{right}".rstrip()[:WIDTH]


def places(finding: Finding) -> list[tuple[str, Site, str]]:
    """Where the culprit was born and moved, each with what there is to say of it."""
    if finding.culprit is None:
        return []
    born, moved = _REMARKS.get(finding.cause, ("", "")) if finding.severity == "error" else ("", "")
    told = (("Born", finding.culprit.born, born), ("Moved", finding.culprit.moved, moved))
    return [(label, site, remark) for label, site, remark in told if site]


def _place(label: str, site: Site, remark: str) -> list[str]:
    left = f"  {label:<7}{site}  "
    room = WIDTH - len(left) - len(remark) - 3
    text = _short(one_line(site.text), max(room, 12))
    gap = max(REMARK - len(left) - len(text), 3) if remark else 0
    return [f"{left}{text}{' ' * gap}{remark}"]


def _summary_line(report: Report) -> str:
    ops = _without_a_line(report.trace)
    for row in report.ledger:
        ops.update(row.ops)
    devices = ", ".join(f"{number:,} on {device}" for device, number in ops.most_common() if number)
    total = sum(ops.values())
    sign = "" if any(finding.severity != "note" for finding in report.findings) else "✓ nothing to mend: "
    folded = f"; {report.trace.truncated:,} of them folded away" if report.trace.truncated else ""
    return f"{sign}{count(total, 'op')}{f' ({devices})' if devices else ''}{folded}"


def _without_a_line(trace: Trace) -> Counter[str]:
    """Ops by device that no line is known of, and which so no line of the ledger counts."""
    names = list(trace.devices)
    devices = trace.ops.ints("device")[trace.ops.ints("site") < 0].tolist()
    return Counter(names[device] for device in devices if device >= 0)


def _rest_lines(report: Report) -> list[str]:
    """What the notes hold, in a line: the ledger has it line by line."""
    kinds = (("h2d", " to a device"), ("d2h", " to the host"), ("d2d", " between devices"))
    copies = [(sum(getattr(row, name) for row in report.ledger), where) for name, where in kinds]
    said = [f"{count(number, 'copy', 'copies')}{where}" for number, where in copies if number]
    waits = sum(row.syncs for row in report.ledger)
    said += [count(waits, "sync")] if waits else []
    moved = sum(row.bytes for row in report.ledger)
    line = ", ".join(said) + (f"; {size(moved)} copied" if moved else "")
    return _wrapped(line, "") if said else []


def _wrapped(text: str, first: str, rest: str | None = None) -> list[str]:
    indent = first if rest is None else rest
    lines: list[str] = []
    for part in text.splitlines():
        lines += textwrap.wrap(
            part,
            WIDTH,
            initial_indent=first if not lines else indent,
            subsequent_indent=indent,
            break_on_hyphens=False,
        )
    return lines


def one_line(text: str) -> str:
    """A piece of code as a sentence quotes it."""
    return " ".join(text.split())


def _short(text: str, room: int) -> str:
    return text if len(text) <= room else text[: max(room - 1, 0)] + "…"


def worst_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Errors, warnings, notes; of the same severity the costly ones first, then as the program ran."""
    order = {severity: place for place, severity in enumerate(SEVERITIES)}
    return tuple(
        sorted(
            findings,
            key=lambda f: (order[f.severity], -f.bytes if f.severity == "note" else 0, -f.count, f.op),
        )
    )
