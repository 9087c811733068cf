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
    """Return for each op of a backward pass the index of its forward op; -1 where there is none, and for other ops."""
    forward = np.full(len(ops.sequence), -1, dtype=np.int64)
    backward = np.flatnonzero(ops.backward & (ops.sequence >= 0))
    if not len(backward):
        return forward
    numbered = np.flatnonzero(~ops.backward & (ops.sequence >= 0))
    for thread in np.unique(ops.thread[numbered]).tolist():
        in_thread = numbered[ops.thread[numbered] == thread]
        in_order = in_thread[np.argsort(ops.sequence[in_thread], kind="stable")]
        places = np.searchsorted(ops.sequence[in_order], ops.sequence[backward], side="right") - 1
        candidate = np.where(places >= 0, in_order[places], -1)
        is_fit = (candidate >= 0) & (ops.sequence[candidate] == ops.sequence[backward]) & (candidate < backward)
        is_fit[is_fit] = _fitting(ops.node[backward[is_fit]], ops.operator[candidate[is_fit]], names, nodes)
        forward[backward] = np.where(is_fit, _nearer(ops, backward, forward[backward], candidate), forward[backward])
    return forward


def _fitting(node: Array, operator: Array, names: Sequence[str], nodes: Sequence[str]) -> Array:
    """Return for each node and operator whether they fit, asking `fits` only once for each pair of names."""
    pairs, pair_of_op = np.unique(node * len(names) + operator, return_inverse=True)
    answers = [fits(nodes[pair // len(names)], names[pair % len(names)]) for pair in pairs.tolist()]
    return np.array(answers, dtype=bool)[pair_of_op.reshape(-1)]


def _nearer(ops: Numbered, backward: Array, one: Array, other: Array) -> Array:
    """Return the forward op on the backward op's device; if both or neither are, the later. `one` may be -1 (none)."""
    device = ops.device[backward]
    one_is_near, other_is_near = (one >= 0) & (ops.device[one] == device), ops.device[other] == device
    return np.where(one_is_near == other_is_near, np.maximum(one, other), np.where(one_is_near, one, other))
