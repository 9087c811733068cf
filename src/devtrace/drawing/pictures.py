"""The static pictures of a trace below each other, for html."""

from collections.abc import Iterable

from devtrace.drawing import curves
from devtrace.drawing.svg import timeline, without_loose_words
from devtrace.trace.curve import Curve
from devtrace.trace.tables import TraceData


def pictures(trace: TraceData, memory: Iterable[Curve]) -> str:
    """Draw the timeline and the memory of some devices; empty where there is nothing to draw."""
    return without_loose_words("".join([timeline(trace), *(curves.picture(each, len(trace.ops)) for each in memory)]))
