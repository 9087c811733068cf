"""Finds the tensor whose memory a tensor uses."""

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
