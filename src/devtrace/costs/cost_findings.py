"""Findings of one kind: of each line that has the cost, and of each line of a package's whose cost is needless.

What costs most comes first; what is nothing beside it asks for no advice. On a real device a wait has its time.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from devtrace.costs.advice import Needless
from devtrace.costs.repeated_costs import Cost, costs, together
from devtrace.diagnosis.evidence.trace_queries import NOWHERE, TraceQueries
from devtrace.diagnosis.findings import Finding, Site, estimated_cost, sites_of_errors, worst_first
from devtrace.diagnosis.ledger import Tally
from devtrace.diagnosis.slugs import RuleSlug
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import one_line, shorten

Judge = Callable[[list[Cost]], list[Needless]]
"""Takes the parts of one line's cost and returns those that are needless, with the reason."""
Word = Callable[[Cost, Sequence[Needless], str], Finding]
"""Makes the finding of a cost, from its needless parts and a remark on the package."""


def findings(queries: TraceQueries, tally: Tally, kind: str, judge: Judge, word: Word) -> Iterator[Finding]:
    by_packages_line: dict[Site | None, list[Needless]] = {}  # a trace has a package's line once for each caller
    for whole in costs(queries, tally, kind):
        parts = judge(whole.parts())
        of_packages = [part for part in parts if not part.cost.is_of_the_user and part.severity == "warning"]
        for part in of_packages:
            by_packages_line.setdefault(queries.site(part.cost.line), []).append(part)
        rest = whole.without([part.cost for part in of_packages])
        others = [part for part in parts if part not in of_packages]
        shown = [part for part in others if part.cost.is_of_the_user and part.severity == "warning"] or others
        if rest.count:
            yield word(rest, shown, _remark_on_packages_line(shown[0].cost) if shown else "")
    for parts in by_packages_line.values():
        costs_of_line = [part.cost for part in parts]
        yield word(together(costs_of_line), parts, _remark_on_callers(costs_of_line))


def finding(rule: RuleSlug, cost: Cost, needless: Needless | None, message: str) -> Finding:
    """Return the finding of a cost, which is a note if it is not needless."""
    return Finding(
        rule=rule,
        severity=needless.severity if needless else "note",
        devices=cost.devices,
        site=cost.queries.site(cost.line),
        op=cost.ops[0] if cost.ops else -1,
        culprit=needless.culprit if needless else None,
        count=cost.count,
        bytes=cost.all_bytes,
        message=message,
        help=_help_for(needless) if needless else "",
        edits=needless.edits if needless else (),
        ops=tuple(cost.ops),
    )


@dataclass
class _Warning:
    """A warning about time. Its fix is also for `values` other values of its statement, and for the lines `sites`."""

    finding: Finding
    covered: list[Finding]
    values: int = 0
    sites: list[Site] = field(default_factory=list)


def warn_once(queries: TraceQueries, findings: Iterable[Finding]) -> Iterator[tuple[Finding, Sequence[Finding]]]:
    """Yield each finding with the findings that its fix is for. Of a cost only the worst stays a warning about time.

    Five reads for one printed line are one cost, and so are two lines that one change mends.
    """
    by_key, warnings = dict[object, _Warning](), list[_Warning]()
    for finding in worst_first(findings):
        keys = _keys_of_cost(queries, finding)
        warning = next((by_key[key] for key in keys if key in by_key), None)
        if warning is not None:
            has_same_fix = finding.rule == warning.finding.rule and (not finding.edits or keys[-1] in by_key)
            if keys[0] in by_key:  # the statement
                warning.values += has_same_fix
            elif finding.site is not None:
                warning.sites.append(finding.site)
            warning.covered += [finding] * has_same_fix
            yield replace(finding, severity="note", help="" if has_same_fix else finding.help), [finding]
        elif keys:
            warnings.append(_Warning(finding, [finding]))
            by_key.update(dict.fromkeys(keys, warnings[-1]))
        else:
            yield finding, [finding]
    for warning in warnings:
        others = sentence("statement.more", count=warning.values) if warning.values else ""
        others += sentence("cost.elsewhere", sites=[*map(str, warning.sites)]) if warning.sites else ""
        yield replace(warning.finding, message=warning.finding.message + others), warning.covered


def _keys_of_cost(queries: TraceQueries, finding: Finding) -> list[object]:
    """Return what findings of one cost share: their statement, else the change that mends them and its tensor."""
    is_of_time = finding.severity == "warning" and finding.count > 1 and finding.op >= 0
    place = queries.node_at(finding.site) if is_of_time and finding.site is not None else NOWHERE
    if place is NOWHERE:
        return []
    tensor = finding.culprit
    change = [(finding.rule, finding.help, finding.edits, tensor.name, tensor.born)] if tensor is not None else []
    return [place.statement, *change]


# Of an installed package.


def _remark_on_callers(costs_of_line: list[Cost]) -> str:
    """Name the package of a line and the user's lines that led there, as the end of a message."""
    queries, line = costs_of_line[0].queries, costs_of_line[0].line
    package = queries.package(line)
    callers = dict.fromkeys(site for cost in costs_of_line if (site := queries.site(cost.site)) is not None)
    if queries.site(line) in callers:
        return sentence("package.of", package=package)
    first, others = next(iter(callers)), len(callers) - 1
    more = sentence("package.more", count=others) if others else ""
    text = shorten(one_line(first.text), 80)
    return sentence("package.called", package=package, caller=first, more=more, text=text)


def _remark_on_packages_line(cost: Cost) -> str:
    """Name a package's line, as the end of a message at the user's line that led there."""
    site, package = cost.queries.site(cost.line), cost.queries.package(cost.line)
    text = shorten(one_line(site.text), 80) if site is not None else ""
    return sentence("package.below", package=package, site=site, text=text) if package else ""


def _help_for(needless: Needless) -> str:
    """Return the help for a line. For a package's line it says that the package must change."""
    package = needless.cost.queries.package(needless.cost.line)
    if not package or not needless.help:
        return needless.help
    return sentence("package.advice", package=package, help=needless.help)


# Of all that the program pays.

_NOTHING: Final = 0.05
"""A note on less than this part of the largest cost gives no advice."""


def _line_of(site: Site | None) -> tuple[str, str | None, int] | None:
    return (site.file, site.cell_id, site.line) if site is not None else None


def told_once(queries: TraceQueries, findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings with one warning for each cost, sorted by the cost of all that their fix is for.

    A split module is left out where a line has an error. A note on next to nothing loses its advice.
    """

    def own_cost(finding: Finding) -> float:
        return _time_stood_still(queries, finding) / 1_000 or estimated_cost(finding)

    def cost(finding: Finding) -> float:
        return costs_of_covered[id(finding)]

    findings = list(findings)
    lines_of_errors = {_line_of(site) for site in sites_of_errors(findings)}
    left = [each for each in findings if each.rule != "split-module" or _line_of(each.site) not in lines_of_errors]
    pairs = list(warn_once(queries, left))
    costs_of_covered = {id(finding): sum(map(own_cost, covered)) for finding, covered in pairs}
    ordered = worst_first((finding for finding, _ in pairs), cost)
    largest = max((cost(finding) for finding in ordered if finding.severity == "warning"), default=0.0)
    return tuple(
        replace(finding, help="", edits=())
        if finding.severity == "note" and estimated_cost(finding) and cost(finding) < _NOTHING * largest
        else _with_time(queries, finding)
        for finding in ordered
    )


def _with_time(queries: TraceQueries, finding: Finding) -> Finding:
    """Say how long the CPU stood still at a line, as a share of the time from its first run to its last."""
    waits = _time_stood_still(queries, finding) if finding.severity == "warning" and finding.count > 1 else 0
    starts = queries.trace.ops.ints("start")[list(finding.ops)] if waits else ()
    whole = int(max(starts) - min(starts)) * finding.count / len(starts) if waits else 0  # with the folded runs
    if not whole:
        return finding
    words = sentence("share.time", time=int(waits), share=min(round(100 * waits / whole), 100))
    return replace(finding, message=finding.message + words)


def _time_stood_still(queries: TraceQueries, finding: Finding) -> float:
    """Return for how many nanoseconds the CPU stood still at a line; 0 where the devices are simulated."""
    ops = queries.trace.ops
    simulated = [device.simulated for device in queries.trace.devices]
    if finding.rule != "host-sync" or not finding.ops or any(simulated):
        return 0.0
    return float(ops.ints("duration")[list(finding.ops)].mean()) * finding.count
