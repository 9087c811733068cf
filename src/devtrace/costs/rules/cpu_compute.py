"""cpu-compute: work left on the CPU in a GPU computation.

head = nn.Linear(8, 2)              # bad: `head(encoder(x).cpu())` computes on the CPU in each step
head = nn.Linear(8, 2).to(device)   # good: `head(encoder(x))`
"""

import re
from collections.abc import Iterator
from typing import Final

import numpy as np

from devtrace.costs.advice import Needless
from devtrace.costs.cost_findings import finding
from devtrace.costs.repeated_costs import STEPS, Cost, costs
from devtrace.diagnosis import ledger
from devtrace.diagnosis.evidence import model_on_host, modules
from devtrace.diagnosis.evidence.moves import crossed
from devtrace.diagnosis.evidence.trace_queries import HOST, META, Rows, TraceQueries
from devtrace.diagnosis.findings import Finding
from devtrace.diagnosis.ledger import Tally
from devtrace.trace.ids import OpId
from devtrace.trace.rows import Module
from devtrace.words.catalogue import sentence

MOST: Final = 4
"""Layers that are named."""
_SAME_NAME: Final = re.compile(r"#\d+$")
_SAMPLE: Final = 200


def left_on_host(queries: TraceQueries, tally: Tally) -> Iterator[Finding]:
    """Find layers that no move reached, as a head attached too late; then lines whose work on the CPU repeats."""
    left = model_on_host.left_behind(queries) if queries.failed < 0 else np.array([], dtype=np.int64)
    if len(left):
        yield _left_behind(queries, left)
    for cost in costs(queries, tally, "cpu_compute"):
        if not len(left) or cost.line != queries.op_users[left[0]]:
            yield _of_line(queries, cost)


def _of_line(queries: TraceQueries, cost: Cost) -> Finding:
    """Advise to move the module that a line's copies go around, unless a line sent that to the CPU."""
    module = _module_between_copies(queries, cost.ops)
    if module is None:
        return finding("cpu-compute", cost, None, sentence("cpu-compute.message", count=cost.count))
    last = next((move for move in modules.moves(queries, module.id) if move.op <= cost.ops[0]), None)
    if last is not None and last.site is not None and str(last.device) == HOST:
        path, site = str(last.module.path), queries.site(last.site.id)
        message = sentence("cpu-compute.moved", count=cost.count, module=path, site=site)
        return finding("cpu-compute", cost, None, message)
    message = sentence("cpu-compute.module", count=cost.count, module=str(module.path))
    needless = Needless(cost, message, sentence("cpu-compute.help", module=str(module.path)))
    return finding("cpu-compute", cost, needless, message)


def _left_behind(queries: TraceQueries, left: Rows) -> Finding:
    """Name the layers that no move reached; of those that their model has not registered, say that."""
    rows = list(dict.fromkeys(queries.module_of_ops[left].tolist()))
    called = queries.trace.ops[left[0]].call
    is_registered = called.module.parent is not None or called.parent is None
    ops = np.flatnonzero(np.isin(queries.module_of_ops, rows) & ledger.on_host(queries)).tolist()
    names = list(dict.fromkeys(f"`{_SAME_NAME.sub('', str(queries.trace.modules[row].path))}`" for row in rows))[:MOST]
    device = next(name for name in queries.device_names if name not in (HOST, META))
    values = {"modules": names, "count": len(names), "layers": len(rows), "device": device}
    values |= {} if is_registered else {"model": str(called.parent.module.path)}
    return Finding(
        rule="cpu-compute",
        severity="warning",
        devices=(HOST, device),
        site=queries.site(queries.op_user(left[0])),
        op=int(left[0]),
        count=len(ops),
        message=sentence("cpu-compute.left" if is_registered else "cpu-compute.unregistered", **values),
        help=sentence("cpu-compute.move" if is_registered else "cpu-compute.register", **values),
        ops=tuple(ops),
    )


def _module_between_copies(queries: TraceQueries, ops: list[OpId]) -> Module | None:
    """Return the module that computed on the host what had just been copied there from a device, step after step.

    It has weights, and not only lengths and masks that a module keeps on the host.
    """
    inside = [op for op in ops if queries.module(op) >= 0][:_SAMPLE]
    fed = [op for op in inside if any(crossed(queries, row) for row in queries.inputs(op))]
    taken = (queries.trace.tensors[row] for op in fed for row in queries.inputs(op))
    has_weights = any(tensor.role == "parameter" for tensor in taken)
    return queries.trace.ops[fed[0]].module if len(fed) >= STEPS and has_weights else None
