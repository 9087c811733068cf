"""Results of diagnosis as data: findings, culprits, sites, edits, ledger rows and the report that holds them.

    report.findings[0].culprit.name     "model.out_head.weight"

Diagnosis makes a report once; a trace that carries findings gives the same report back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from typing import Any, Final, Literal

from devtrace.diagnosis.slugs import CauseSlug, Certainty, Severity
from devtrace.trace.rows import Site as SiteRow
from devtrace.trace.rows import site_label
from devtrace.trace.tables import TraceData
from devtrace.words.catalogue import sentence

Grade = Literal["proven", "tried", "not tried"]
SEVERITIES: Final[tuple[Severity, ...]] = ("error", "warning", "note")
MOST_OPS: Final = 50


@dataclass(frozen=True, slots=True)
class Site:
    """A piece of source in a file or a notebook cell. For the cell In[7], `cell` is 7."""

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
        return cls(*(getattr(row, field.name) for field in fields(cls)))

    def __str__(self) -> str:
        return site_label(self.file, self.line, self.cell)


@dataclass(frozen=True, slots=True)
class Edit:
    """A change in the source. Replace the text `before`, which begins at line `line`, with the text `after`.

    If `before` is empty, insert `after` below line `line`. Line 0 is the top of the file. The grade is "not tried"
    until devtrace runs the program with it; then "tried", or "proven" if the values are right (see `Finding.proof`).
    """

    file: str
    cell: int | None
    line: int
    before: str
    after: str
    grade: Grade = "not tried"


@dataclass(frozen=True, slots=True)
class Choice:
    """A fix that comes after the one that a finding offers; `devtrace fix` tries it if that one fails."""

    help: str
    edits: tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class Culprit:
    """A tensor, or a random generator, on the wrong device."""

    name: str
    names: tuple[str, ...] = ()
    device: str = ""
    shape: tuple[int, ...] = ()
    dtype: str = ""
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
class Holder:
    """A name that holds memory, and how; `born` is the line that made most of it, `site` the one that keeps it."""

    name: str
    kind: str
    bytes: int
    born: Site | None = None
    site: Site | None = None
    count: int = 1


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem that a rule found at one line: an error, a warning or a note."""

    rule: str  # a RuleSlug, or the slug of another package's rule
    severity: Severity
    cause: CauseSlug | Literal[""] = ""
    devices: tuple[str, ...] = ()
    site: Site | None = None
    op: int = -1
    culprit: Culprit | None = None
    count: int = 1
    bytes: int = 0
    message: str = ""
    help: str = ""
    edits: tuple[Edit, ...] = ()
    ops: tuple[int, ...] = ()
    lines: tuple[Line, ...] = ()
    holders: tuple[Holder, ...] = ()
    proof: str | None = None
    others: tuple[Choice, ...] = ()
    trains: bool = False  # with its edits an optimizer finds what it did not


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

    @property
    def outcome(self) -> str:
        """Return how the program ended: "ended", "interrupted", "failed: IndexError: ..."; "" where nobody saw it."""
        return self.trace.outcome

    @property
    def all_clear(self) -> bool:
        """Return whether it ended well, on an accelerator, with nothing to warn of and nothing of a model elsewhere."""
        return self.trace.all_clear and all(finding.severity == "note" for finding in self.findings)

    @property
    def used_accelerator(self) -> bool:
        """Return whether an op ran on a device other than the CPU."""
        names = [str(device) for device in self.trace.devices]
        devices = {names[device] for device in set(self.trace.ops.ints("device").tolist()) if device >= 0}
        return not devices.union(*(row.ops for row in self.ledger)) <= {"cpu", "meta"}


def to_json(part: Any, site: Callable[[Site | None], Any] = lambda site: site and asdict(site)) -> dict[str, Any]:
    """Return a finding, or a part of one, as plain values, its sites as `site` writes them.

    A trace writes them as row ids, -1 where there is none; an export in full.
    """
    plain = {field.name: _plain_value(getattr(part, field.name), site) for field in fields(part)}
    filled = {name: value for name, value in plain.items() if value or name not in ("holders", "others", "trains")}
    return filled | {name: site(None) for name in _EMPTY_AS_SITES if plain.get(name, "") is None}


def _plain_value(value: Any, site: Callable[[Site | None], Any]) -> Any:
    if isinstance(value, tuple):
        return [_plain_value(item, site) for item in value]
    if isinstance(value, Site):
        return site(value)
    return to_json(value, site) if is_dataclass(value) else value


def with_parts(data: Any, part: Callable[[dict[str, Any]], dict[str, Any]], text: Callable[[str], str] = str) -> Any:
    """Return what `to_json` wrote, with `part` applied to its dicts, innermost first, and `text` to its texts."""
    if isinstance(data, dict):
        return part({name: with_parts(value, part, text) for name, value in data.items()})
    if isinstance(data, list):
        return [with_parts(item, part, text) for item in data]
    return text(data) if isinstance(data, str) else data


def from_json(
    data: Mapping[str, Any], site: Callable[[Any], Site | None] = lambda values: Site(**values) if values else None
) -> Finding:
    """Return the finding that `to_json` wrote, its sites as `site` reads them; fields left out have their defaults."""
    return Finding(**_known_fields(Finding, data, site))


def _known_fields(kind: type[Any], data: Mapping[str, Any], site: Callable[[Any], Site | None]) -> dict[str, Any]:
    return {field.name: _read_field(field.name, data[field.name], site) for field in fields(kind) if field.name in data}


def _read_field(name: str, value: Any, site: Callable[[Any], Site | None]) -> Any:
    """Return a field's value from JSON; a list without the sites, or lines, that the trace does not have."""
    if isinstance(value, list):
        return tuple(part for item in value if (part := _read_field(name, item, site)) is not None)
    if name in _SITES:
        return site(value)
    if name in ("cell", "grade"):
        return {-1: None, "safe": "not tried"}.get(value, value)  # "safe" is an older devtrace's
    if name == "lines" and site(value["site"]) is None:
        return None
    if name not in _PARTS or value is None:
        return value
    return _PARTS[name](**_known_fields(_PARTS[name], {"certainty": "inferred", **value}, site))


_SITES: Final = ("site", "born", "moved", "chain")
_EMPTY_AS_SITES: Final = ("site", "born", "moved", "cell")
_PARTS: Final[Mapping[str, type[Any]]] = {
    "culprit": Culprit, "edits": Edit, "lines": Line, "holders": Holder, "others": Choice,
}  # fmt: skip


def offered_fix(finding: Finding) -> str:
    """Return the help of a finding, and that its edits were not tried if so."""
    is_untried = any(edit.grade == "not tried" for edit in finding.edits)
    return sentence("fix.not-tried", help=finding.help) if is_untried else finding.help


_MICROSECONDS: Final = {"host-sync": 20, "device-to-host-copy": 25, "cpu-compute": 50}  # one of them, at least


def estimated_cost(finding: Finding) -> float:
    """Return about how many microseconds a finding's syncs, copies or CPU ops take; 0 for a rule of other things."""
    cost_of_one = _MICROSECONDS.get(finding.rule, 10 if finding.rule.endswith("-copy") else 0)
    return finding.count * cost_of_one + finding.bytes / 10_000 if cost_of_one else 0


def worst_first(findings: Iterable[Finding], cost: Callable[[Finding], float] = estimated_cost) -> tuple[Finding, ...]:
    """Sort by severity; within it what costs the program most comes first, then as the program ran."""
    return tuple(sorted(findings, key=lambda f: (SEVERITIES.index(f.severity), -cost(f), -f.count, f.op)))


def sites_of_errors(findings: Iterable[Finding]) -> set[Site | None]:
    errors = [finding for finding in findings if finding.severity == "error"]
    return {error.site for error in errors} | {error.culprit.born for error in errors if error.culprit is not None}
