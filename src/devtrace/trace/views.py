"""What follows from a trace's rows: whose memory a tensor uses, in which module an op ran, which ranks are alike."""

from collections.abc import Collection

import numpy as np
import numpy.typing as npt

from devtrace.trace.tables import Ints, TraceData

Whole = npt.NDArray[np.int64]


def storage_owners(trace: TraceData) -> Ints:
    """Return for each tensor row the row whose memory it uses: itself, or for a view the tensor at its beginning.

    A tensor that an op changed in place (`x.t_()`, `x.squeeze_()`) still uses the memory that it had before. The row of
    the changed tensor is a view of the earlier row. A copy has memory of its own.
    """
    tensors = trace.tensors
    sources, devices, producers = (tensors.ints(name) for name in ("source", "device", "producer"))
    copies = np.append(trace.ops.ints("kind") == trace.string_id("copy"), False)  # the last: no producer
    views = (sources >= 0) & (devices[sources] == devices) & ~copies[producers]
    owners = np.where(views, sources, np.arange(len(tensors)))
    for _ in range(32):  # each round doubles the length of chain that is followed
        further = owners[owners]
        if np.array_equal(further, owners):
            break
        owners = further
    return owners


def autocasts_of_ops(trace: TraceData) -> Ints:
    """Return for each op the innermost region of autocast for its kind of device that it ran in, -1 for none."""
    threads, devices, regions = trace.ops.ints("thread"), trace.ops.ints("device"), trace.autocasts
    kinds = np.array([*(str(device).partition(":")[0] for device in trace.devices), ""])
    innermost = np.full(len(trace.ops), -1, dtype=np.int32)
    for row in range(len(regions)):
        ops = np.arange(regions.number("begin", row), regions.number("end", row))
        is_in = (threads[ops] == regions.number("thread", row)) & (kinds[devices[ops]] == regions.raw("device", row))
        innermost[ops[is_in]] = row
    return innermost


def modules_of_ops(trace: TraceData) -> Ints:
    """Return for each op the module in whose call it ran, the innermost; -1 outside of all."""
    return np.append(trace.calls.ints("module"), -1)[trace.ops.ints("call")]


def outermost_calls(trace: TraceData) -> Ints:
    """Return for each op the outermost call of a module around it; -1 outside of all."""
    parents = np.append(trace.calls.ints("parent"), -1)
    outermost = trace.ops.ints("call")
    while (parents[outermost] >= 0).any():
        outermost = np.where(parents[outermost] >= 0, parents[outermost], outermost)
    return outermost


def durations(trace: TraceData) -> Whole:
    """Return the ns of each op; 0 for an op that raised."""
    return np.maximum(trace.ops.ints("duration").astype(np.int64), 0)


def total_time(trace: TraceData) -> int:
    """Return the ns from the start of the first op to the end of the last one."""
    start = trace.ops.ints("start")
    return int((start + durations(trace)).max() - start[0]) if len(start) else 0


def rank_of_ops(trace: TraceData) -> Ints:
    return np.append(trace.threads.ints("rank"), -1)[trace.ops.ints("thread")]


def alike(trace: TraceData, wanted: Collection[int]) -> dict[int, list[int]]:
    """Return the ranks that did the same ops in the same order, by the one that is drawn for them.

    That is the first one that has an op of `wanted`, else the lowest. Each rank's own device counts as the same.
    """
    rank_of_op = rank_of_ops(trace)
    flagged = {int(rank_of_op[op]) for op in wanted}
    ranks_by_doings: dict[tuple[bytes, ...], list[int]] = {}
    for rank in np.unique(rank_of_op[rank_of_op >= 0]).tolist():
        ranks_by_doings.setdefault(_doings(trace, np.flatnonzero(rank_of_op == rank)), []).append(rank)
    return {next((rank for rank in ranks if rank in flagged), ranks[0]): ranks for ranks in ranks_by_doings.values()}


def _doings(trace: TraceData, ops: Ints) -> tuple[bytes, ...]:
    """Return the names, devices and failures of some ops, thread by thread."""
    ops = ops[np.argsort(trace.ops.ints("thread")[ops], kind="stable")]
    devices = trace.ops.ints("device")[ops]
    shared = [id for id, device in enumerate(trace.devices) if device.name in ("cpu", "meta")]
    own = np.bincount(devices[(devices >= 0) & ~np.isin(devices, shared)], minlength=1).argmax()
    relative = np.where(np.isin(devices, shared), devices, np.where(devices == own, -2, -1 - devices - len(shared)))
    failed = trace.ops.ints("duration")[ops] < 0
    return trace.ops.ints("name")[ops].tobytes(), relative.astype(np.int64).tobytes(), failed.tobytes()
