"""moved-after-wrap: a module was moved to another device after DistributedDataParallel had wrapped it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.diagnosis.findings import Finding
from devtrace.diagnosis.ledger import Tally
from devtrace.diagnosis.rules.rule import CostRule
from devtrace.words.catalogue import sentence

_WRAPPER: Final = "DistributedDataParallel"


def moved_after_wrap(queries: TraceQueries, tally: Tally) -> Iterator[Finding]:
    """DDP keeps the devices that it saw; its buckets stay there when the parameters leave."""
    trace = queries.trace
    moved = (trace.moves.ints("device") >= 0) & (trace.moves.ints("tensors") > 0)
    for move in (trace.moves[row] for row in np.flatnonzero(moved).tolist()):
        wrapper = move.module if move.module.type == _WRAPPER else move.module.parent
        if wrapper is None or wrapper.type != _WRAPPER or not _was_wrapped(queries, wrapper.id, move.op):
            continue
        device = str(trace.devices[move.device.id]) if move.device is not None else ""
        yield Finding(
            rule="moved-after-wrap",
            severity="warning",
            cause="",
            devices=(device,),
            site=queries.site(int(queries.users[move.site.id])) if move.site is not None else None,
            op=move.op,
            count=move.tensors,
            message=sentence("moved-after-wrap.message", module=str(move.module.path), device=device),
            help=sentence("moved-after-wrap.help"),
        )


RULE: Final = CostRule(
    slug="moved-after-wrap",
    find=moved_after_wrap,
)


def _was_wrapped(queries: TraceQueries, wrapper: int, op: int) -> bool:
    """Return whether the wrapper had its module by then."""
    modules = queries.trace.modules
    attached = modules.ints("op")[modules.ints("parent") == wrapper]
    return bool(len(attached)) and bool((attached <= op).all())
