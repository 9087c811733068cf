"""`devtrace.diagnose`: the report of a trace, made once and then kept by the trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from devtrace.api.results import Report, Trace
from devtrace.diagnosis import diagnose as diagnosis
from devtrace.trace.tables import TraceData

if TYPE_CHECKING:
    from devtrace.source.live_objects import Live


def diagnose(trace: TraceData, live: Live | None = None) -> Report:
    """Make the report of a trace; made once, the trace keeps it.

    `live` gives the frames and objects of a program that is still there: names are then the user's own.
    """
    given = Trace.of(trace)
    kept = given.kept_report
    if kept is None:
        kept = Report.of(diagnosis.diagnose(given, live))
        given.keep(kept)
        kept.trace.keep(kept)
    return kept
