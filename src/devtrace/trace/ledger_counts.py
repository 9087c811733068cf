"""Counts by line, as the ledger has them: the recorder counts the ops that it folds away, diagnosis the rest.

Arrays in, arrays out; it knows no trace.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from devtrace.trace.columns import LEDGER_COUNTS

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]


class Ops(NamedTuple):
    """Columns of ops: `times` is how many each row counts for, `paid_at` the site that waits and copies count for."""

    site: Array
    device: Array
    times: Array
    sync: Mask
    compute: Mask
    has_dimensions: Mask
    paid_at: Array


class Copies(NamedTuple):
    """Columns of copies; `op` is an index into the columns of ops."""

    op: Array
    source: Array
    target: Array
    times: Array
    bytes: Array


def callers_of_backward(site: Array, backward: Mask, forward: Array, seeds: Mask) -> Array:
    """Return the site to which each op's waits and copies count: its own, or that of the call of backward.

    Backward was called where the first gradient was made (`seeds`: ones_like, just before the pass), else where its ops
    without a forward op are.
    """
    if not backward.any():
        return site
    begins = np.flatnonzero(backward & ~np.concatenate([[False], backward[:-1]]))
    run_of_op = np.searchsorted(begins, np.arange(len(site)), side="right") - 1
    caller_of_run = site[begins]
    without_forward = np.flatnonzero(backward & (forward < 0) & (site >= 0))
    caller_of_run[run_of_op[without_forward]] = site[without_forward]
    has_seed = (begins > 0) & seeds[begins - 1]
    caller_of_run = np.where(has_seed, site[begins - 1], caller_of_run)
    is_own = (forward < 0) & (site >= 0)  # code of a hook, or of the user's own backward
    return np.where(backward & ~is_own, caller_of_run[np.maximum(run_of_op, 0)], site)


def directions(copies: Copies, host: int) -> dict[str, Mask]:
    """Mark the copies to a device, to the host, between devices."""
    crossing = copies.source != copies.target
    return {
        "h2d": crossing & (copies.source == host),
        "d2h": crossing & (copies.target == host),
        "d2d": crossing & (copies.source != host) & (copies.target != host),
    }


def waits(sync: Mask, device: Array, host: int) -> Mask:
    """Mark the ops for which the host waits: those that read a value of another device than the host."""
    marked: Mask = sync & (device != host) & (device >= 0)
    return marked


def on_host(ops: Ops, host: int) -> Mask:
    """Mark the ops that compute on the CPU while the program uses a device. Arithmetic on single numbers is not."""
    uses_device = bool(((ops.device >= 0) & (ops.device != host)).any())
    marked: Mask = ops.compute & (ops.device == host) & ops.has_dimensions & uses_device
    return marked


def count(ops: Ops, copies: Copies, *, sites: int, devices: int, host: int) -> tuple[Array, dict[str, Array]]:
    """Return by site: ops by device, and the rest by name."""
    counts = {
        "syncs": _sum(ops.paid_at, ops.times * waits(ops.sync, ops.device, host), sites),
        "cpu_compute": _sum(ops.site, ops.times * on_host(ops, host), sites),
    }
    paid_at = ops.paid_at[copies.op]
    for name, is_in_direction in directions(copies, host).items():
        counts[name] = _sum(paid_at, copies.times * is_in_direction, sites)
    counts["bytes"] = _sum(paid_at, copies.bytes, sites)
    has_device = ops.device >= 0
    flat = _sum(np.where(has_device & (ops.site >= 0), ops.site * devices + ops.device, -1), ops.times, sites * devices)
    return flat.reshape(sites, devices), {name: counts[name] for name in LEDGER_COUNTS}


def _sum(indexes: Array, values: Array, size: int) -> Array:
    """Sum values by index; those at -1 are left out."""
    is_known = indexes >= 0
    return np.bincount(indexes[is_known], values[is_known], size).astype(np.int64)
