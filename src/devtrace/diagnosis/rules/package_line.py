"""The line of an installed package that a cost comes from, and the user's line that led there."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

import numpy as np

from devtrace.diagnosis.evidence.trace_queries import Rows, TraceQueries
from devtrace.diagnosis.findings import Site
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import one_line, shorten

_Part = TypeVar("_Part")


class UntilThen(NamedTuple):
    """Code that the user of a package can run today, below the line that moves `root`."""

    root: str
    code: str


class Line(NamedTuple):
    """A line, the indexes of its ops among those of the user's line, and how many there were."""

    line: int
    at: Rows
    times: int


def lines_of(queries: TraceQueries, ops: Rows, name: str, times: int) -> list[Line]:
    """Return the lines that the ops of a user's line come from, a package's or that line; the most frequent first.

    For an op of the backward pass that is the line that called backward. There were `times` ops, of which the ledger
    counts by `name` those that were folded; what is of no package's line is the user's.
    """
    is_backward = queries.trace.ops.ints("phase")[ops] == queries.strings.get("backward", -1)
    lines = np.where(is_backward, queries.cost_users[ops], queries.trace.ops.ints("site")[ops])
    found, counts = np.unique(lines, return_counts=True)
    exact = {line: n + _folded(queries, line, name) for line, n in zip(found.tolist(), counts.tolist(), strict=True)}
    own = int(queries.users[found[0]]) if len(found) else -1
    if own in exact:
        exact[own] += times - sum(exact.values())
    order = found[np.argsort(-counts, kind="stable")].tolist()
    return [Line(line, np.flatnonzero(lines == line), exact[line]) for line in order]


def _folded(queries: TraceQueries, line: int, name: str) -> int:
    ledger = queries.trace.ledger
    return int(ledger.ints(name)[ledger.ints("site") == line].sum()) if len(ledger) else 0


def by_site(queries: TraceQueries, parts: Iterable[_Part], line: Callable[[_Part], int]) -> list[list[_Part]]:
    """Group parts by the site of their line: a trace has a package's line once for each caller."""
    groups: dict[Site | None, list[_Part]] = {}
    for part in parts:
        groups.setdefault(queries.site(line(part)), []).append(part)
    return list(groups.values())


def remark(queries: TraceQueries, lines: list[int]) -> str:
    """Name the package of a line and the user's lines that led there, as the end of a message."""
    package = queries.package(lines[0]) if lines else ""
    if not package:
        return ""
    callers = dict.fromkeys(site for line in lines if (site := queries.site(int(queries.users[line]))) is not None)
    if queries.site(lines[0]) in callers:
        return sentence("package.of", package=package)
    first, others = next(iter(callers)), len(callers) - 1
    more = sentence("package.more", count=others) if others else ""
    text = shorten(one_line(first.text), 80)
    return sentence("package.called", package=package, caller=first, more=more, text=text)


def remark_below(queries: TraceQueries, line: int) -> str:
    """Name a package's line, as the end of a message at the user's line that led there."""
    site, package = queries.site(line), queries.package(line)
    if site is None or not package:
        return ""
    return sentence("package.below", package=package, site=site, text=shorten(one_line(site.text), 80))


def advice(queries: TraceQueries, line: int, help: str, until: UntilThen | None = None) -> str:
    """Return the help for a line; of a package's, that the package must change and what its user can do."""
    package = queries.package(line)
    if not package or not help:
        return help
    if until is not None:
        return sentence("package.advice-until", package=package, help=help, root=until.root, code=until.code)
    return sentence("package.advice-upstream", package=package, help=help)
