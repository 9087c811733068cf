"""What follows from a trace's rows: whose memory a tensor uses, which region of autocast an op ran in."""

import numpy as np

from devtrace.trace.tables import Ints, TraceData


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
    found = np.full(len(trace.ops), -1, dtype=np.int32)
    for row in range(len(regions)):
        ops = np.arange(regions.number("begin", row), regions.number("end", row))
        is_in = (threads[ops] == regions.number("thread", row)) & (kinds[devices[ops]] == regions.raw("device", row))
        found[ops[is_in]] = row
    return found
