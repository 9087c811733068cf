"""Findings of one kind: of each line that has the habit, and of each line of a package's whose habit is needless."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from devtrace.costs.repeated_costs import Habit, habits, together
from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.diagnosis.findings import Culprit, Edit, Finding, Site, worst_first
from devtrace.diagnosis.fixes.fix import Fix
from devtrace.diagnosis.ledger import Tally
from devtrace.diagnosis.slugs import RuleSlug, Severity
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import one_line, shorten


class UntilThen(NamedTuple):
    """Code that the user of a package can run today, below the line that moves `root`; if empty, in the call itself."""

    root: str
    code: str


@dataclass(frozen=True, eq=False)
class Needless:
    """Why a habit need not be, and what to do about it. That of a short loop is worth a note."""

    habit: Habit
    why: str
    help: str
    culprit: Culprit | None = None
    edits: tuple[Edit, ...] = ()
    severity: Severity = "warning"
    until: UntilThen | None = None


Judge = Callable[[list[Habit]], list[Needless]]
"""Says which habits are needless, of those that a line of the user's consists of."""
Word = Callable[[Habit, Sequence[Needless], str], Finding]
"""Words a habit, with what of it is needless and what is to be said of a package."""


def findings(queries: TraceQueries, tally: Tally, kind: str, judge: Judge, word: Word) -> Iterator[Finding]:
    of_packages: dict[Site | None, list[Needless]] = {}  # a trace has a package's line once for each caller
    for whole in habits(queries, tally, kind):
        judged = judge(whole.parts())
        below = [each for each in judged if not each.habit.is_of_the_user and each.severity == "warning"]
        for each in below:
            of_packages.setdefault(queries.site(each.habit.line), []).append(each)
        rest = whole.without([each.habit for each in below])
        left = [each for each in judged if each not in below]
        own = [each for each in left if each.habit.is_of_the_user and each.severity == "warning"] or left
        if rest.count:
            yield word(rest, own, _remark_below(own[0].habit) if own else "")
    for same in of_packages.values():
        yield word(together([each.habit for each in same]), same, _remark([each.habit for each in same]))


def finding(rule: RuleSlug, habit: Habit, needless: Sequence[Needless], message: str, plain: Fix | None) -> Finding:
    """Return the finding of a habit: a warning if it is a needless one. `plain` is the fix of one that is not."""
    first = needless[0] if needless else None
    return Finding(
        rule=rule,
        severity=first.severity if first else "note",
        devices=habit.devices,
        site=habit.queries.site(habit.line),
        op=habit.ops[0] if habit.ops else -1,
        culprit=first.culprit if first else None,
        count=habit.count,
        bytes=habit.all_bytes,
        message=message,
        help=_advice(first) if first else plain.help if plain else "",
        edits=first.edits if first else plain.edits if plain else (),
        ops=tuple(habit.ops),
    )


@dataclass
class _Cost:
    """A warning about time, with how many values of its statement, and which lines, its fix is for too."""

    finding: Finding
    covered: list[Finding]
    values: int = 0
    sites: list[Site] = field(default_factory=list)


def one_a_cost(queries: TraceQueries, findings: Iterable[Finding]) -> Iterator[tuple[Finding, Sequence[Finding]]]:
    """Yield findings, of which a cost has one warning about time, each with all that its fix is for.

    Five reads for one printed line are one cost, and so are two lines that one change mends.
    """
    known, costs = dict[object, _Cost](), list[_Cost]()
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
            costs.append(_Cost(finding, [finding]))
            known.update(dict.fromkeys(keys, costs[-1]))
        else:
            yield finding, [finding]
    for cost in costs:
        alike = sentence("statement.more", count=cost.values) if cost.values else ""
        alike += sentence("cost.elsewhere", sites=[*map(str, cost.sites)]) if cost.sites else ""
        yield replace(cost.finding, message=cost.finding.message + alike), cost.covered


def _keys(queries: TraceQueries, finding: Finding) -> list[object]:
    """Return what a cost is known by: its statement, and the change that mends it where it names the tensor."""
    is_of_time = finding.severity == "warning" and finding.count > 1 and finding.op >= 0
    found = queries.node_at(finding.site) if is_of_time and finding.site is not None else None
    if found is None:
        return []
    tensor = finding.culprit
    change = [(finding.rule, finding.help, finding.edits, tensor.name, tensor.born)] if tensor is not None else []
    return [found.statement, *change]


# Of an installed package.


def _remark(same: list[Habit]) -> str:
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


def _remark_below(habit: Habit) -> str:
    """Name a package's line, as the end of a message at the user's line that led there."""
    site, package = habit.queries.site(habit.line), habit.queries.package(habit.line)
    text = shorten(one_line(site.text), 80) if site is not None else ""
    return sentence("package.below", package=package, site=site, text=text) if package else ""


def _advice(needless: Needless) -> str:
    """Return the help for a line; of a package's, that the package must change and what its user can do."""
    package, until = needless.habit.queries.package(needless.habit.line), needless.until
    if not package or not needless.help:
        return needless.help
    if until is not None and not until.root:
        return sentence("package.advice-outside", package=package, help=needless.help, code=until.code)
    if until is not None:
        return sentence("package.advice-until", package=package, help=needless.help, root=until.root, code=until.code)
    return sentence("package.advice-upstream", package=package, help=needless.help)
