"""Ops that torch decomposes before it dispatches: a recording never sees them, an export of torch.profiler does."""

from __future__ import annotations

from collections import defaultdict

import torch

_DECOMPOSED = "CompositeImplicitAutograd"


def composite_ops() -> frozenset[str]:
    """Return the names ("aten::linear") all of whose overloads are made of other ops.

    Overloads for `out=` and named dimensions do not count: they often are where the op itself is not.
    """
    decomposed = set(torch._C._dispatch_get_registrations_for_dispatch_key(_DECOMPOSED))
    overloads: dict[str, list[str]] = defaultdict(list)
    for name in torch._C._dispatch_get_all_op_names():
        base, _, overload = name.partition(".")
        if not overload.endswith("out") and "name" not in overload.lower():
            overloads[base].append(name)
    return frozenset(base for base, names in overloads.items() if all(name in decomposed for name in names))
