"""Finds for each op of a backward pass the forward op that it differentiates, by autograd's sequence number.

The counter is each thread's own, so the same number may mean ops of several threads. The node's name must fit the op's.
Of several that fit, the latest one on the same device is taken.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from devtrace.recording.columns.chunk import Array as Array


class Numbered(NamedTuple):
    """Ops as far as autograd numbers them. `operator` and `node` are indexes into their names."""

    sequence: Array
    backward: Array
    operator: Array
    node: Array
    device: Array
    thread: Array


@lru_cache(maxsize=4096)
def fits(node: str, op: str) -> bool:
    """Return whether an op of this name makes an autograd node of this class."""
    wanted = re.sub(r"backwards?\d*$", "", node.lower()).replace("_", "")
    base = op.split(".")[1] if "." in op else op
    # An op in place on a view is differentiated by CopySlices, whatever it is.
    return wanted == base.lower().replace("_", "") or wanted == "copyslices"


def forward_ops(ops: Numbered, names: Sequence[str], nodes: Sequence[str]) -> Array:
    """Return for each op the index of its forward op, or -1."""
    found = np.full(len(ops.sequence), -1, dtype=np.int64)
    asked = np.flatnonzero(ops.backward & (ops.sequence >= 0))
    if not len(asked):
        return found
    made = np.flatnonzero(~ops.backward & (ops.sequence >= 0))
    for thread in np.unique(ops.thread[made]).tolist():
        mine = made[ops.thread[made] == thread]
        mine = mine[np.argsort(ops.sequence[mine], kind="stable")]
        at = np.searchsorted(ops.sequence[mine], ops.sequence[asked], side="right") - 1
        other = np.where(at >= 0, mine[at], -1)
        able = (other >= 0) & (ops.sequence[other] == ops.sequence[asked]) & (other < asked)
        able[able] = _fitting(ops.node[asked[able]], ops.operator[other[able]], names, nodes)
        found[asked] = np.where(able, _better(ops, asked, found[asked], other), found[asked])
    return found


def _fitting(node: Array, operator: Array, names: Sequence[str], nodes: Sequence[str]) -> Array:
    """Apply `fits` to each pair; there are few different ones."""
    pairs, which = np.unique(node * len(names) + operator, return_inverse=True)
    fit = [fits(nodes[pair // len(names)], names[pair % len(names)]) for pair in pairs.tolist()]
    return np.array(fit, dtype=bool)[which.reshape(-1)]


def _better(ops: Numbered, asked: Array, one: Array, other: Array) -> Array:
    """Choose the op on the device of the one that asks; if both or neither are on it, the later."""
    here = ops.device[asked]
    near, far = (one >= 0) & (ops.device[one] == here), ops.device[other] == here
    return np.where(near == far, np.maximum(one, other), np.where(near, one, other))
