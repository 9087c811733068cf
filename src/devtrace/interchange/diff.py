"""Two traces compared: findings that came and went, tensors that changed device, lines whose copies and syncs changed.

    print(devtrace.diff("yesterday.devtrace", "today.devtrace"))
    devtrace.diff("broken", "fixed")        # in a notebook, the cells traced by these names

Lines are the same when file (or being a cell), function and text are: line and cell numbers change from run to run.
Tensors and modules are the same when they have the same name.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Final, Literal, NamedTuple

import numpy as np

from devtrace.api.results import load
from devtrace.diagnosis.diagnose import diagnose
from devtrace.diagnosis.findings import Finding, LedgerRow, ReportData, Site
from devtrace.diagnosis.saved_case import Case
from devtrace.interchange.comparison import Change, Comparison
from devtrace.notebook.kept_traces import kept
from devtrace.report import parts
from devtrace.trace.rows import Failure
from devtrace.trace.tables import TraceData
from devtrace.words.catalogue import comma, sentence
from devtrace.words.errors import expect_kind
from devtrace.words.text_format import one_line

_MODULE_ROLES: Final = ("parameter", "buffer", "attribute")

_COUNTS: Final[dict[str, Callable[[LedgerRow], int]]] = {
    "diff.ops": lambda row: sum(row.ops.values()),
    "diff.copies": lambda row: row.copies,
    "diff.syncs": lambda row: row.syncs,
}

Given = TraceData | ReportData | str | int | Path
Key = tuple[str, ...]
Move = tuple[str, str]  # the devices before and after


def diff(before: Given, after: Given, names: tuple[str, str] | None = None) -> Comparison:
    """Compare two runs. Each run is a trace, a report, a file, or the name or number of a traced cell.

    The result calls the runs by `names`. If only one failed, what the other did after the failing op is left out.
    """
    first, second = _report(before), _report(after)
    sides = _Sides(first, second)
    changes = [*_finding_changes(sides), *_error_changes(sides), *_device_changes(sides)]
    changes += [*_count_changes(sides, "copies"), *_count_changes(sides, "syncs")]
    return Comparison(first, second, tuple(changes), names or (_file(before), _file(after)), tuple(_totals(sides)))


class _Sides(NamedTuple):
    before: ReportData
    after: ReportData

    @property
    def stopped(self) -> tuple[bool, bool]:
        """Return for each whether it alone failed, and so did not do what the other did after that."""
        first, second = (_final_error(report.trace) is not None for report in self)
        return first and not second, second and not first


def _final_error(trace: TraceData) -> Failure | None:
    """Return the error that the recording ended with: that of its last op."""
    error = trace.errors[-1] if len(trace.errors) else None
    return error if error is not None and error.op.id == len(trace.ops) - 1 else None


def _totals(sides: _Sides) -> Iterable[str]:
    """Return the sums that changed, and which run did less because it failed."""
    sums = {key: [sum(map(count, report.ledger)) for report in sides] for key, count in _COUNTS.items()}
    changed = comma().join(
        sentence("diff.total", name=sentence(key), before=before, after=after)
        for key, (before, after) in sums.items()
        if before != after
    )
    return filter(None, (changed, _sentence_on_stop(sides)))


def _sentence_on_stop(sides: _Sides) -> str:
    for key, report, stopped in zip(("diff.first-stopped", "diff.second-stopped"), sides, sides.stopped, strict=True):
        failure = _final_error(report.trace)
        if stopped and failure is not None:
            site = failure.op.site
            where = sentence("diff.at", site=site.caller or site) if site else ""
            return sentence(key, type=failure.type, where=where)
    return ""


def _file(run: Given) -> str:
    return Path(run).name if isinstance(run, str | Path) else ""


def _report(run: Given) -> ReportData:
    if isinstance(run, ReportData):
        return run
    if isinstance(run, TraceData):
        return diagnose(Case(run))
    expect_kind("diff", run, str, int, PathLike, error="wrong-argument.traces")
    name = str(run)
    cell_report = kept(name) if not Path(name).exists() else None
    return cell_report or diagnose(Case(load(name)))


def _same_line(site: Site | None) -> Key:
    if site is None:
        return ("",)
    file = "a cell" if site.cell is not None else site.file.rsplit("/", 1)[-1]
    return file, site.function, one_line(site.text)


def _finding_changes(sides: _Sides) -> Iterable[Change]:
    before, after = map(_by_identity, sides)
    first_stopped, second_stopped = sides.stopped
    for key, finding in after.items():
        if key not in before:
            worse = finding.severity == "error" or not first_stopped
            yield Change("finding", _where(finding.site), "", _rule_and_culprit(finding), worse)
    for key, finding in before.items():
        if key not in after and (finding.severity == "error" or not second_stopped):
            yield Change("finding", _where(finding.site), _rule_and_culprit(finding), "")


def _by_identity(report: ReportData) -> dict[Key, Finding]:
    """Return errors and warnings by rule, culprit and line, worst first."""
    return {
        (finding.rule, finding.culprit.name if finding.culprit else "", *_same_line(finding.site)): finding
        for finding in report.findings
        if finding.severity != "note"
    }


def _rule_and_culprit(finding: Finding) -> str:
    """Name the rule, and the tensor or else the devices."""
    culprit = finding.culprit
    on = sentence("diff.on", name=culprit.name, device=culprit.device) if culprit else " + ".join(finding.devices)
    return f"{finding.rule}: {on}"


def _where(site: Site | None) -> str:
    return f"{site}  {one_line(site.text)}" if site else parts.where(site)


def _error_changes(sides: _Sides) -> Iterable[Change]:
    """Yield exceptions of ops that came or went, where no finding explains them."""
    before, after = map(_unexplained_errors, sides)
    for key, site in after.items():
        if key not in before:
            yield Change("error", parts.where(site), "", ": ".join(key), worse=True)
    for key, site in before.items():
        if key not in after:
            yield Change("error", parts.where(site), ": ".join(key), "")


def _unexplained_errors(report: ReportData) -> dict[Key, Site | None]:
    """Return the sites of errors that no finding explains, by type and first line."""
    explained = {finding.op for finding in report.findings}
    errors = [error for error in report.trace.errors if error.op.id not in explained]
    sites = [Site.of(error.op.site) if error.op.site else None for error in errors]
    return {(error.type, error.message.partition("\n")[0]): site for error, site in zip(errors, sites, strict=True)}


def _device_changes(sides: _Sides) -> Iterable[Change]:
    before, after = (_last_devices(report.trace) for report in sides)
    moves = {name: (before[name], after[name]) for name in after if name in before and before[name] != after[name]}
    for name, count, (first, second) in _by_module(moves, before.keys() & after.keys()):
        label = sentence("diff.tensors", name=name, count=count) if count > 1 else name
        yield Change("device", label, first, second)


def _last_devices(trace: TraceData) -> dict[str, str]:
    """Return the last device of each parameter, buffer and attribute of a module, by name."""
    tensors = trace.tensors
    roles = [trace.string_id(role) for role in _MODULE_ROLES]
    rows = np.flatnonzero(np.isin(tensors.ints("role"), roles))
    return {tensors[row].name: tensors[row].device.name for row in rows.tolist()}


def _by_module(moves: Mapping[str, Move], known: Iterable[str]) -> Iterable[tuple[str, int, Move]]:
    """Yield tensors whose device differs; `net.head` stands for all of its own if they changed alike."""
    names_below: dict[str, list[str]] = defaultdict(list)
    for name in known:
        for prefix in _prefixes(name):
            names_below[prefix].append(name)
    done: set[str] = set()
    for name, change in sorted(moves.items()):
        if name in done:
            continue
        alike = (path for path in _prefixes(name) if {moves.get(other) for other in names_below[path]} == {change})
        whole = next(alike, name)
        names = names_below[whole] if len(names_below[whole]) > 1 else [name]
        done.update(names)
        yield whole if len(names) > 1 else name, len(names), change


def _prefixes(name: str) -> list[str]:
    """Return `a` and `a.b` for `a.b.weight`."""
    parts = name.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts))]


def _count_changes(sides: _Sides, what: Literal["copies", "syncs"]) -> Iterable[Change]:
    """Yield lines at which a count changed, the largest change first."""
    count = _COUNTS["diff.copies" if what == "copies" else "diff.syncs"]
    sums: tuple[Counter[Key], Counter[Key]] = (Counter(), Counter())
    sites: dict[Key, Site] = {}
    for side, report in zip(sums, sides, strict=True):
        for row in report.ledger:
            if count(row):
                side[_same_line(row.site)] += count(row)
                sites[_same_line(row.site)] = row.site
    first_stopped, second_stopped = sides.stopped
    more = {key: sums[1][key] - sums[0][key] for key in sites}
    changed = [key for key in sites if (more[key] > 0 and not first_stopped) or (more[key] < 0 and not second_stopped)]
    for key in sorted(changed, key=lambda key: -abs(more[key])):
        before, after = (f"{side[key]:,}" if side[key] else "" for side in sums)
        yield Change(what, _where(sites[key]), before, after)
