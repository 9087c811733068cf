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
"""Says what is needless of the costs that a line of the user's consists of."""
Word = Callable[[Cost, Sequence[Needless], str], Finding]
"""Words a cost, with what of it is needless and what is to be said of a package."""


def findings(queries: TraceQueries, tally: Tally, kind: str, judge: Judge, word: Word) -> Iterator[Finding]:
    of_packages: dict[Site | None, list[Needless]] = {}  # a trace has a package's line once for each caller
    for whole in costs(queries, tally, kind):
        judged = judge(whole.parts())
        below = [each for each in judged if not each.cost.is_of_the_user and each.severity == "warning"]
        for each in below:
            of_packages.setdefault(queries.site(each.cost.line), []).append(each)
        rest = whole.without([each.cost for each in below])
        left = [each for each in judged if each not in below]
        own = [each for each in left if each.cost.is_of_the_user and each.severity == "warning"] or left
        if rest.count:
            yield word(rest, own, _remark_below(own[0].cost) if own else "")
    for same in of_packages.values():
        yield word(together([each.cost for each in same]), same, _remark([each.cost for each in same]))


def finding(rule: RuleSlug, cost: Cost, needless: Needless | None, message: str) -> Finding:
    """Return the finding of a cost: a warning if it is a needless one."""
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
        help=_advice(needless) if needless else "",
        edits=needless.edits if needless else (),
        ops=tuple(cost.ops),
    )


@dataclass
class _Told:
    """A warning about time, with how many values of its statement, and which lines, its fix is for too."""

    finding: Finding
    covered: list[Finding]
    values: int = 0
    sites: list[Site] = field(default_factory=list)


def one_a_cost(queries: TraceQueries, findings: Iterable[Finding]) -> Iterator[tuple[Finding, Sequence[Finding]]]:
    """Yield findings, of which a cost has one warning about time, each with all that its fix is for.

    Five reads for one printed line are one cost, and so are two lines that one change mends.
    """
    known, told = dict[object, _Told](), list[_Told]()
    for finding in worst_first(findings):
        keys = _keys(queries, finding)
        cost = next((known[key] for key in keys if key in known), None)
        if cost is not None:
            is_alike = finding.rule == cost.finding.rule and (not finding.edits or keys[-1] in known)
            if keys[0] in known:
                cost.values += is_alike
            elif finding.site is not None:
                cost.sites.append(finding.site)
            cost.covered += [finding] * is_alike
            yield replace(finding, severity="note", help="" if is_alike else finding.help), [finding]
        elif keys:
            told.append(_Told(finding, [finding]))
            known.update(dict.fromkeys(keys, told[-1]))
        else:
            yield finding, [finding]
    for cost in told:
        alike = sentence("statement.more", count=cost.values) if cost.values else ""
        alike += sentence("cost.elsewhere", sites=[*map(str, cost.sites)]) if cost.sites else ""
        yield replace(cost.finding, message=cost.finding.message + alike), cost.covered


def _keys(queries: TraceQueries, finding: Finding) -> list[object]:
    """Return what a cost is known by: its statement, and the change that mends it where it names the tensor."""
    is_of_time = finding.severity == "warning" and finding.count > 1 and finding.op >= 0
    found = queries.node_at(finding.site) if is_of_time and finding.site is not None else NOWHERE
    if found is NOWHERE:
        return []
    tensor = finding.culprit
    change = [(finding.rule, finding.help, finding.edits, tensor.name, tensor.born)] if tensor is not None else []
    return [found.statement, *change]


# Of an installed package.


def _remark(same: list[Cost]) -> str:
    """Name the package of a line and the user's lines that led there, as the end of a message."""
    queries, line = same[0].queries, same[0].line
    package = queries.package(line)
    callers = dict.fromkeys(site for each in same if (site := queries.site(each.site)) is not None)
    if queries.site(line) in callers:
        return sentence("package.of", package=package)
    first, others = next(iter(callers)), len(callers) - 1
    more = sentence("package.more", count=others) if others else ""
    text = shorten(one_line(first.text), 80)
    return sentence("package.called", package=package, caller=first, more=more, text=text)


def _remark_below(cost: Cost) -> str:
    """Name a package's line, as the end of a message at the user's line that led there."""
    site, package = cost.queries.site(cost.line), cost.queries.package(cost.line)
    text = shorten(one_line(site.text), 80) if site is not None else ""
    return sentence("package.below", package=package, site=site, text=text) if package else ""


def _advice(needless: Needless) -> str:
    """Return the help for a line; of a package's, that the package must change."""
    package = needless.cost.queries.package(needless.cost.line)
    if not package or not needless.help:
        return needless.help
    return sentence("package.advice", package=package, help=needless.help)


# Of all that the program pays.

_NOTHING: Final = 0.05
"""Less than so much of the largest cost is nothing beside it."""


def _line(site: Site | None) -> tuple[str, str | None, int] | None:
    return (site.file, site.cell_id, site.line) if site is not None else None


def told_once(queries: TraceQueries, findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings of which each cost has one warning, and none is about a line with an error.

    They are sorted by what their fix is for; of what is next to nothing the advice goes.
    """

    def own_cost(finding: Finding) -> float:
        return _stood_still(queries, finding) / 1_000 or estimated_cost(finding)

    def cost(finding: Finding) -> float:
        return weights[id(finding)]

    findings = list(findings)
    explained = {_line(site) for site in sites_of_errors(findings)}  # a module in two halves: by what made one half
    left = [each for each in findings if each.rule != "split-module" or _line(each.site) not in explained]
    pairs = list(one_a_cost(queries, left))
    weights = {id(finding): sum(map(own_cost, covered)) for finding, covered in pairs}
    found = worst_first((finding for finding, _ in pairs), cost)
    largest = max((cost(each) for each in found if each.severity == "warning"), default=0.0)
    return tuple(
        replace(each, help="", edits=())
        if each.severity == "note" and estimated_cost(each) and cost(each) < _NOTHING * largest
        else _with_time(queries, each)
        for each in found
    )


def _with_time(queries: TraceQueries, finding: Finding) -> Finding:
    """Say how long the CPU stood still at a line, of the time from its first run to its last."""
    stood = _stood_still(queries, finding) if finding.severity == "warning" and finding.count > 1 else 0
    starts = queries.trace.ops.ints("start")[list(finding.ops)] if stood else ()
    passed = int(max(starts) - min(starts)) * finding.count / len(starts) if stood else 0
    if not passed:
        return finding
    words = sentence("share.time", time=int(stood), share=min(round(100 * stood / passed), 100))
    return replace(finding, message=finding.message + words)


def _stood_still(queries: TraceQueries, finding: Finding) -> float:
    """Return for how many nanoseconds the CPU stood still at a line; 0 where the devices are simulated."""
    ops = queries.trace.ops
    simulated = [device.simulated for device in queries.trace.devices]
    if finding.rule != "host-sync" or not finding.ops or any(simulated):
        return 0.0
    return float(ops.ints("duration")[list(finding.ops)].mean()) * finding.count
