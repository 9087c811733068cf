"""Ranks of one job in a picture: those that did the same are drawn once."""

from collections.abc import Sequence

from devtrace.drawing.lanes import Lane
from devtrace.trace.tables import TraceData


def drawn(every: Sequence[Lane], trace: TraceData, shown: dict[int, list[int]]) -> list[Lane]:
    """Return the lanes of those ranks that are drawn; what belongs to no rank stays."""
    ranks = trace.threads.ints("rank")
    return [lane for lane in every if not len(ranks) or ranks[lane.thread] < 0 or int(ranks[lane.thread]) in shown]
