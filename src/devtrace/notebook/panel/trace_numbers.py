"""The traces that a session keeps, each under a number that a panel can ask for, and what a panel is told of each."""

from __future__ import annotations

import re
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from devtrace.words.errors import DevtraceError

if TYPE_CHECKING:
    from devtrace.api.results import Trace
    from devtrace.notebook.cells import Traced, Tracing

Message = dict[str, Any]


class Kept:
    """Numbers the traces of a history as they come; a number is never used again."""

    def __init__(self, tracing: Tracing) -> None:
        self._tracing = tracing
        self._traces: dict[int, Traced] = {}
        self._summaries: dict[int, Message] = {}
        self._last = 0
        self._lock = threading.RLock()

    @property
    def numbers(self) -> list[int]:
        with self._lock:
            self._update()
            return list(self._traces)

    def find(self, number: int) -> Traced:
        with self._lock:
            self._update()
            if number in self._traces:
                return self._traces[number]
        raise DevtraceError(
            "trace-gone", f"trace {number}", "the kernel keeps the newest traces of its session", "run the cell again"
        )

    def since(self, number: int) -> list[Message]:
        """Summaries of the traces after this number."""
        with self._lock:
            self._update()
            return [self._summary(known, traced) for known, traced in self._traces.items() if known > number]

    def _update(self) -> None:
        kept = list(self._tracing.history)
        known = {id(traced) for traced in self._traces.values()}
        for number, traced in list(self._traces.items()):
            if not any(traced is held for held in kept):
                del self._traces[number]
                self._summaries.pop(number, None)
        for traced in kept:
            if id(traced) not in known:
                self._last += 1
                self._traces[self._last] = traced

    def _summary(self, number: int, traced: Traced) -> Message:
        if number not in self._summaries:
            self._summaries[number] = {
                "trace": number,
                "label": traced.label,
                "cell": traced.cell.id,
                "seconds": _seconds(traced.trace),
                "ops": len(traced.trace.ops) + traced.trace.truncated,
                "outline": outline(traced.trace),
            }
        return self._summaries[number]


def outline(trace: Trace) -> Message:
    """The trace without its ops, as it is sent: findings, ledger, sites and the cells' source."""
    import numpy as np

    from devtrace.trace.format import encode
    from devtrace.trace.subset import cut

    return encode(cut(trace, np.zeros(len(trace.ops), dtype=bool)))


def exported(traced: Traced, form: str) -> tuple[str, str]:
    """A file's name and text: "html" the report as a page, "perfetto" the trace for ui.perfetto.dev."""
    name = re.sub(r"\W+", "-", traced.label).strip("-") or "trace"
    with tempfile.TemporaryDirectory(prefix="devtrace-") as folder:
        if form == "html":
            path = Path(folder) / f"{name}.html"
            traced.report.to_html(path)
        else:
            path = Path(folder) / f"{name}.perfetto.json"
            traced.trace.to_perfetto(path)
        return path.name, path.read_text(encoding="utf-8")


def _seconds(trace: Trace) -> float:
    """From the start of its first op to the end of its last one."""
    start, duration = trace.ops.ints("start"), trace.ops.ints("duration")
    return float((start + duration.clip(0)).max() - start[0]) / 1e9 if len(start) else 0.0
