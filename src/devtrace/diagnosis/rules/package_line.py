"""The line of an installed package that a cost comes from, under the user's line that led there."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from devtrace.diagnosis.evidence.trace_queries import Rows, TraceQueries
from devtrace.words.text_format import one_line, pluralize, shorten


def parts(queries: TraceQueries, ops: Rows) -> Iterator[tuple[int, Rows]]:
    """Yield indexes of ops by the line that they come from, a package's or the user's; the most frequent line first.

    For an op of the backward pass that is the line that called backward.
    """
    is_backward = queries.trace.ops.ints("phase")[ops] == queries.strings.get("backward", -1)
    lines = np.where(is_backward, queries.cost_users[ops], queries.trace.ops.ints("site")[ops])
    found, counts = np.unique(lines, return_counts=True)
    for line in found[np.argsort(-counts, kind="stable")].tolist():
        yield line, np.flatnonzero(lines == line)


def remark(queries: TraceQueries, line: int, others: int = 0) -> str:
    """Name a package's line, as the end of a message; `others` is how many more lines cost the same."""
    site, package = queries.site(line), queries.package(line)
    if site is None or not package:
        return ""
    more = f" ({pluralize(others, 'more line')} there likewise)" if others else ""
    return f" It is in {package}, {site}{more}: {shorten(one_line(site.text), 80)}"


def advice(queries: TraceQueries, line: int, help: str) -> str:
    """Return the help for a line; of a package's, that the package must change."""
    package = queries.package(line)
    return f"in {package}: {help}" if package and help else help
