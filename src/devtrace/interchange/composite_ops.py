"""Ops that torch takes apart before it dispatches: a recording never sees them, an export of torch.profiler does."""

from __future__ import annotations

from collections import defaultdict

import torch

_DECOMPOSED = "CompositeImplicitAutograd"


def composite_ops() -> frozenset[str]:
    """Names ("aten::linear") all of whose overloads are only made of others. Those for `out=` and named dimensions,
    which are often so where the op itself is not, do not count.
    """
    decomposed = set(torch._C._dispatch_get_registrations_for_dispatch_key(_DECOMPOSED))
    overloads: dict[str, list[str]] = defaultdict(list)
    for name in torch._C._dispatch_get_all_op_names():
        base, _, overload = name.partition(".")
        if not overload.endswith("out") and "name" not in overload.lower():
            overloads[base].append(name)
    return frozenset(base for base, names in overloads.items() if all(name in decomposed for name in names))
