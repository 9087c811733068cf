"""Ranks of one job in a picture: those that did the same are drawn once."""

from collections.abc import Collection, Sequence

import numpy as np

from devtrace.drawing.lanes import Lane
from devtrace.trace.tables import Ints, TraceData


def rank_of_ops(trace: TraceData) -> Ints:
    return np.append(trace.threads.ints("rank"), -1)[trace.ops.ints("thread")]


def alike(trace: TraceData, wanted: Collection[int]) -> dict[int, list[int]]:
    """Return the ranks that did the same ops in the same order, by the one that is drawn for them.

    That is the first one that has an op of `wanted`, else the lowest. Each rank's own device counts as the same.
    """
    of_op = rank_of_ops(trace)
    flagged = {int(of_op[op]) for op in wanted}
    found: dict[tuple[bytes, ...], list[int]] = {}
    for rank in np.unique(of_op[of_op >= 0]).tolist():
        found.setdefault(_doings(trace, np.flatnonzero(of_op == rank)), []).append(rank)
    return {next((rank for rank in ranks if rank in flagged), ranks[0]): ranks for ranks in found.values()}


def _doings(trace: TraceData, ops: Ints) -> tuple[bytes, ...]:
    """Return the names, devices and failures of some ops, thread by thread."""
    ops = ops[np.argsort(trace.ops.ints("thread")[ops], kind="stable")]
    devices = trace.ops.ints("device")[ops]
    shared = [id for id, device in enumerate(trace.devices) if device.name in ("cpu", "meta")]
    own = np.bincount(devices[(devices >= 0) & ~np.isin(devices, shared)], minlength=1).argmax()
    relative = np.where(np.isin(devices, shared), devices, np.where(devices == own, -2, -1 - devices - len(shared)))
    failed = trace.ops.ints("duration")[ops] < 0
    return trace.ops.ints("name")[ops].tobytes(), relative.astype(np.int64).tobytes(), failed.tobytes()


def drawn(every: Sequence[Lane], trace: TraceData, shown: dict[int, list[int]]) -> list[Lane]:
    """Return the lanes of those ranks that are drawn; what belongs to no rank stays."""
    ranks = trace.threads.ints("rank")
    return [lane for lane in every if not len(ranks) or ranks[lane.thread] < 0 or int(ranks[lane.thread]) in shown]
