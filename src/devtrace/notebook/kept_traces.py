"""Traces that a notebook keeps, found by the name or number that its user knows them by."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from devtrace.words.errors import UsageError

if TYPE_CHECKING:
    from devtrace.diagnosis.findings import ReportData
    from devtrace.notebook.cells import History

_notebooks: list[History] = []


def let_find(history: History) -> Callable[[], None]:
    """Let names be looked up among the traces of a notebook; the returned function ends that."""
    _notebooks.append(history)
    return lambda: _notebooks.remove(history) if history in _notebooks else None


def kept(name: str) -> ReportData | None:
    """Return the report of the trace of this name; None where no notebook keeps traces."""
    for history in _notebooks:
        if name and (traced := history.find(name)):
            return traced.report
    labels = [label for history in _notebooks for label in history.labels()]
    if not _notebooks:
        return None
    raise UsageError.of("no-trace.compared-kept" if labels else "no-trace.compared", key=repr(name), kept=labels)
