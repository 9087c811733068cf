"""cpu-compute: work left on the CPU in a GPU computation. split-module: one module's own tensors on several devices."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Final

import numpy as np

from devtrace.diagnosis.evidence.trace_queries import HOST, Rows, TraceQueries
from devtrace.diagnosis.findings import Finding
from devtrace.diagnosis.ledger import Tally, on_host
from devtrace.words.text_format import pluralize

STEPS: Final = 5
"""Work on the host in fewer steps than this is a set-up or an evaluation."""


def left_on_host(queries: TraceQueries, tally: Tally) -> Iterator[Finding]:
    chosen = np.flatnonzero(on_host(queries))
    at = queries.op_users[chosen]
    order = np.argsort(at, kind="stable")
    bounds = np.searchsorted(at[order], np.arange(len(queries.trace.sites) + 1))
    for site in tally.sites("cpu_compute"):
        ops = chosen[order[bounds[site] : bounds[site + 1]]]
        times = int(tally["cpu_compute"][site])
        module = _module_between_copies(queries, ops)
        message = f"{pluralize(times, 'op')} computed on the CPU"
        yield Finding(
            rule="cpu-compute",
            severity="warning" if module else "note",
            cause="",
            devices=(HOST,),
            site=queries.site(site),
            op=int(ops[0]) if len(ops) else -1,
            count=times,
            message=message + (f": {module} works there on data that came from a device." if module else "."),
            help=f"move {module} to the device of its inputs, and leave the inputs where they are" if module else "",
            ops=tuple(ops.tolist()),
        )


def _module_between_copies(queries: TraceQueries, ops: Rows) -> str:
    """The module that computed on the host what had just been copied there from a device, in step after step."""
    calls = queries.trace.ops.ints("call")[ops]
    inside = ops[calls >= 0]
    if len(inside) < STEPS:
        return ""
    fed = [int(op) for op in inside[:200] if _fed_from_device(queries, int(op))]
    if len(fed) < STEPS:
        return ""
    call = queries.trace.ops[fed[0]].call
    return str(call.module.path) if call is not None and any(_has_parameters(queries, op) for op in fed) else ""


def _fed_from_device(queries: TraceQueries, op: int) -> bool:
    for row in queries.inputs(op):
        producer = queries.producer(row)
        if producer >= 0 and queries.kind(producer) == "copy":
            source = queries.source(row)
            if source >= 0 and queries.device(source) != HOST:
                return True
    return False


def _has_parameters(queries: TraceQueries, op: int) -> bool:
    """Whether an op reads a weight: lengths and masks that a module keeps on the host are no layer left behind."""
    tensors = queries.trace.tensors
    return any(tensors.raw("role", row) == "parameter" for row in queries.inputs(op))


def split_modules(queries: TraceQueries, tally: Tally) -> Iterator[Finding]:
    """A leaf module with one parameter here and one there cannot run; a model split by layers can: it is no finding."""
    homes: dict[str, dict[str, int]] = defaultdict(dict)
    tensors = queries.trace.tensors
    roles = {queries.strings.get(role, -1) for role in ("parameter", "buffer")} - {-1}
    held = np.flatnonzero(np.isin(tensors.ints("role"), list(roles))).tolist()
    last = {str(tensors.raw("name", row)): row for row in held}  # one that was moved has a row for each place
    for name, row in last.items():
        if queries.dims[row] > 0:
            homes[name.rpartition(".")[0]].setdefault(queries.device(row), row)
    # A replaced module and its successor have one path.
    modules = Counter(str(module.path) for module in queries.trace.modules)
    for path, places in homes.items():
        if len(places) > 1 and path and modules[path] == 1:
            yield _split(queries, path, places)


def _split(queries: TraceQueries, path: str, places: dict[str, int]) -> Finding:
    last = max(places.values())
    born = queries.born(last)
    devices = tuple(sorted(places))
    return Finding(
        rule="split-module",
        severity="warning",
        cause="",
        devices=devices,
        site=queries.site(int(queries.users[born])) if born >= 0 else None,
        op=queries.producer(last),
        message=f"The own tensors of {path} are on {' and '.join(devices)}.",
        help=f"move {path} as a whole",
    )
