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
"""How many layers a finding names."""
_SAME_NAME: Final = re.compile(r"#\d+$")
_SAMPLE: Final = 200


def left_on_host(queries: TraceQueries, tally: Tally) -> Iterator[Finding]:
    """Find layers that no move reached, as a head attached too late; then lines whose work on the CPU repeats."""
    ops = model_on_host.left_behind(queries) if queries.failed < 0 else np.array([], dtype=np.int64)
    if len(ops):
        yield _finding_of_layers(queries, ops)
    for cost in costs(queries, tally, "cpu_compute"):
        if not len(ops) or cost.line != queries.op_users[ops[0]]:
            yield _finding_of_line(queries, cost)


def _finding_of_line(queries: TraceQueries, cost: Cost) -> Finding:
    """Advise to move the module between a line's copies, unless the program itself moved it to the CPU."""
    module = _module_between_copies(queries, cost.ops)
    if module is None:
        return finding("cpu-compute", cost, None, sentence("cpu-compute.message", count=cost.count))
    move = next((move for move in modules.moves(queries, module.id) if move.op <= cost.ops[0]), None)
    if move is not None and move.site is not None and str(move.device) == HOST:
        path, site = str(move.module.path), queries.site(move.site.id)
        message = sentence("cpu-compute.moved", count=cost.count, module=path, site=site)
        return finding("cpu-compute", cost, None, message)
    message = sentence("cpu-compute.module", count=cost.count, module=str(module.path))
    needless = Needless(cost, message, sentence("cpu-compute.help", module=str(module.path)))
    return finding("cpu-compute", cost, needless, message)


def _finding_of_layers(queries: TraceQueries, ops_left: Rows) -> Finding:
    """Name the layers that no move reached, and say so if their model has not registered them."""
    layers = list(dict.fromkeys(queries.module_of_ops[ops_left].tolist()))
    call = queries.trace.ops[ops_left[0]].call
    is_registered = call.module.parent is not None or call.parent is None
    ops = np.flatnonzero(np.isin(queries.module_of_ops, layers) & ledger.on_host(queries)).tolist()
    paths = (str(queries.trace.modules[layer].path) for layer in layers)
    names = list(dict.fromkeys(f"`{_SAME_NAME.sub('', path)}`" for path in paths))[:MOST]
    device = next(name for name in queries.device_names if name not in (HOST, META))
    values = {"modules": names, "count": len(names), "layers": len(layers), "device": device}
    values |= {} if is_registered else {"model": str(call.parent.module.path)}
    return Finding(
        rule="cpu-compute",
        severity="warning",
        devices=(HOST, device),
        site=queries.site(queries.op_user(ops_left[0])),
        op=int(ops_left[0]),
        count=len(ops),
        message=sentence("cpu-compute.left" if is_registered else "cpu-compute.unregistered", **values),
        help=sentence("cpu-compute.move" if is_registered else "cpu-compute.register", **values),
        ops=tuple(ops),
    )


def _module_between_copies(queries: TraceQueries, ops: list[OpId]) -> Module | None:
    """Return the module that computed on the host, step after step, with data that had just been copied there.

    It has weights, and not only lengths and masks that a module keeps on the host.
    """
    ops_in_modules = [op for op in ops if queries.module(op) >= 0][:_SAMPLE]
    takers = [op for op in ops_in_modules if any(crossed(queries, tensor) for tensor in queries.inputs(op))]
    inputs = (queries.trace.tensors[tensor] for op in takers for tensor in queries.inputs(op))
    has_weights = any(tensor.role == "parameter" for tensor in inputs)
    return queries.trace.ops[takers[0]].module if len(takers) >= STEPS and has_weights else None
