"""cpu-compute: work left on the CPU in a GPU computation.

head = nn.Linear(8, 2)              # bad: `head(encoder(x).cpu())` computes on the CPU in each step
head = nn.Linear(8, 2).to(device)   # good: `head(encoder(x))`
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from devtrace.diagnosis.evidence.trace_queries import HOST, Rows, TraceQueries
from devtrace.diagnosis.findings import Finding, Site
from devtrace.diagnosis.ledger import Tally, on_host
from devtrace.diagnosis.rules.rule import CostRule
from devtrace.trace.rows import Module, Move
from devtrace.words.catalogue import sentence

STEPS: Final = 5
"""Work on the host in fewer steps than this is a set-up or an evaluation."""


def left_on_host(queries: TraceQueries, tally: Tally) -> Iterator[Finding]:
    chosen = np.flatnonzero(on_host(queries))
    sites = queries.op_users[chosen]
    order = np.argsort(sites, kind="stable")
    bounds = np.searchsorted(sites[order], np.arange(len(queries.trace.sites) + 1))
    for site in tally.sites("cpu_compute"):
        ops = chosen[order[bounds[site] : bounds[site + 1]]]
        count = int(tally["cpu_compute"][site])
        worker = _module_between_copies(queries, ops)
        moved = _moved_to_the_host(queries, worker, ops) if worker is not None else None
        module = str(worker.path) if worker is not None and moved is None else ""
        yield Finding(
            rule="cpu-compute",
            severity="warning" if module else "note",
            cause="",
            devices=(HOST,),
            site=queries.site(site),
            op=int(ops[0]) if len(ops) else -1,
            count=count,
            message=_message(count, module, moved),
            help=sentence("cpu-compute.help", module=module) if module else "",
            ops=tuple(ops.tolist()),
        )


RULE: Final = CostRule(
    slug="cpu-compute",
    find=left_on_host,
)


def _message(count: int, module: str, moved: Move | None) -> str:
    if moved is not None and moved.site is not None:
        return sentence("cpu-compute.moved", count=count, module=str(moved.module.path), site=Site.of(moved.site))
    if module:
        return sentence("cpu-compute.module", count=count, module=module)
    return sentence("cpu-compute.message", count=count)


def _moved_to_the_host(queries: TraceQueries, module: Module, ops: Rows) -> Move | None:
    """Return the last move of a module, or of one around it, before ops: if that was to the CPU, it was meant so."""
    around: list[Module] = [module]
    while (parent := around[-1].parent) is not None:
        around.append(parent)
    paths = {each.id for each in around}
    moves = [move for move in queries.trace.moves if move.module.id in paths and move.op <= ops[0]]
    is_to_host = bool(moves) and moves[-1].device is not None and str(moves[-1].device) == HOST
    return moves[-1] if is_to_host else None


def _module_between_copies(queries: TraceQueries, ops: Rows) -> Module | None:
    """Return the module that computed on the host what had just been copied there from a device, step after step."""
    calls = queries.trace.ops.ints("call")[ops]
    inside = ops[calls >= 0]
    if len(inside) < STEPS:
        return None
    fed = [int(op) for op in inside[:200] if _is_fed_from_a_device(queries, int(op))]
    if len(fed) < STEPS:
        return None
    call = queries.trace.ops[fed[0]].call
    return call.module if call is not None and any(_has_parameters(queries, op) for op in fed) else None


def _is_fed_from_a_device(queries: TraceQueries, op: int) -> bool:
    for row in queries.inputs(op):
        producer = queries.producer(row)
        if producer >= 0 and queries.kind(producer) == "copy":
            source = queries.source(row)
            if source >= 0 and queries.device(source) != HOST:
                return True
    return False


def _has_parameters(queries: TraceQueries, op: int) -> bool:
    """Return whether an op reads a weight, and not only lengths and masks that a module keeps on the host."""
    tensors = queries.trace.tensors
    return any(tensors.raw("role", row) == "parameter" for row in queries.inputs(op))
