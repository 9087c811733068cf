"""The traces that a session keeps, as a panel shows, fetches and exports them."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from devtrace.notebook.cells import History, Traced
from devtrace.notebook.companion import Message
from devtrace.words.errors import DevtraceError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from devtrace.api.results import Trace


def find(history: History, number: int) -> Traced:
    if traced := history.numbered.get(number):
        return traced
    raise DevtraceError.of("trace-gone", number=number)


def summary(number: int, traced: Traced) -> Message:
    """Describe a trace; its outline is what `readOutline` keeps in the page: findings, ledger, sites, source."""
    from devtrace.trace.format import encode
    from devtrace.trace.subset import cut
    from devtrace.trace.views import total_time

    return {
        "trace": number,
        "label": traced.label,
        "cell": traced.cell.id,
        "seconds": total_time(traced.trace) / 1e9,
        "ops": len(traced.trace.ops) + traced.trace.truncated,
        "outline": encode(cut(traced.trace, _optimizers_on_cpu(traced.trace))),
    }


def _optimizers_on_cpu(trace: Trace) -> NDArray[np.bool_]:
    """Mark of each line the kinds of op that an optimizer ran on the CPU: they explain the line's stripe."""
    ops = trace.ops
    cpu = next((row for row, device in enumerate(trace.devices) if device == "cpu"), -1)
    found = np.flatnonzero((ops.ints("phase") == trace.string_id("optimizer")) & (ops.ints("device") == cpu))
    kinds = np.stack([ops.ints("site")[found], ops.ints("name")[found]])
    keep = np.zeros(len(ops), dtype=bool)
    keep[found[np.unique(kinds, axis=1, return_index=True)[1]]] = True
    return keep


def exported(traced: Traced, form: str) -> tuple[str, str]:
    """Return a file's name and text: "html" the report as a page, "perfetto" the trace for ui.perfetto.dev."""
    name = re.sub(r"\W+", "-", traced.label).strip("-") or "trace"
    with tempfile.TemporaryDirectory(prefix="devtrace-") as folder:
        is_page = form == "html"
        path = Path(folder) / f"{name}.{'html' if is_page else 'perfetto.json'}"
        traced.report.to_html(path) if is_page else traced.trace.to_perfetto(path)
        return path.name, path.read_text(encoding="utf-8")
