"""Traces that a notebook keeps, found by the name or number that its user knows them by."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from devtrace.words.errors import UsageError

if TYPE_CHECKING:
    from devtrace.diagnosis.findings import ReportData

Find = Callable[[str], "ReportData | None"]
List = Callable[[], list[str]]

_notebooks: list[tuple[Find, List]] = []


def let_find(find: Find, labels: List) -> Callable[[], None]:
    """Let names be looked up in a notebook, which lists its traces as `labels()`; the returned function ends that."""
    notebook = find, labels
    _notebooks.append(notebook)
    return lambda: _notebooks.remove(notebook) if notebook in _notebooks else None


def kept(name: str) -> ReportData | None:
    """Return the report of the trace of this name; None where no notebook keeps traces."""
    for find, _ in _notebooks:
        if report := find(name):
            return report
    labels = [label for _, labels in _notebooks for label in labels()]
    if not _notebooks:
        return None
    raise UsageError.of("no-trace.compared-kept" if labels else "no-trace.compared", key=repr(name), kept=labels)
