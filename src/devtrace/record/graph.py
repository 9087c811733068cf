"""Leads each op of a backward pass to the forward op that it differentiates, by autograd's sequence number.

The counter is each thread's own, so the same number may mean ops of several threads: the node's name must fit the
op's, and of those that fit the one on the same device counts, the latest of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@lru_cache(maxsize=4096)
def fits(node: str, op: str) -> bool:
    """Whether an autograd node of this class is the one that an op of this name makes."""
    wanted = re.sub(r"backwards?\d*$", "", node.lower()).replace("_", "")
    base = op.split(".")[1] if "." in op else op
    # An op in place on a view is differentiated by CopySlices, whatever it is.
    return wanted == base.lower().replace("_", "") or wanted == "copyslices"


def forward_ops(
    sequence: Array,
    backward: Array,
    names: Sequence[str],
    plan: Array,
    nodes: Sequence[str],
    node: Array,
    device: Array,
) -> Array:
    """For each op the id of its forward op, or -1."""
    found = np.full(len(sequence), -1, dtype=np.int32)
    made: dict[int, list[int]] = {}
    numbers, plans, classes, devices, passes = (values.tolist() for values in (sequence, plan, node, device, backward))
    for op, number in enumerate(numbers):
        if number < 0:
            continue
        if not passes[op]:
            made.setdefault(number, []).append(op)
            continue
        able = [other for other in made.get(number, ()) if fits(nodes[classes[op]], names[plans[other]])]
        near = [other for other in able if devices[other] == devices[op]]
        if able:
            found[op] = (near or able)[-1]
    return found
