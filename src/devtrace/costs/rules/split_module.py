"""split-module: one module's own tensors are on several devices.

layer.weight.data = layer.weight.data.to(device)        # bad: the bias stays
layer.to(device)                                        # good
"""

from collections import Counter, defaultdict
from collections.abc import Iterator

from devtrace.diagnosis.evidence import modules
from devtrace.diagnosis.evidence.trace_queries import META, TraceQueries
from devtrace.diagnosis.findings import Finding
from devtrace.diagnosis.ledger import Tally
from devtrace.trace.ids import TensorId
from devtrace.words.catalogue import sentence


def split_modules(queries: TraceQueries, tally: Tally) -> Iterator[Finding]:
    """Find leaf modules with parameters on two devices, which cannot run; a model split by layers can."""
    devices_of: dict[str, dict[str, TensorId]] = defaultdict(dict)
    last = dict(modules.tensors(queries, "parameter", "buffer"))  # one that moved is there once for each device
    for name, row in last.items():
        if queries.dims[row] > 0 and queries.device(row) != META:
            devices_of[name.rpartition(".")[0]].setdefault(queries.device(row), row)
    # A replaced module and its successor have one path.
    known = Counter(str(module.path) for module in queries.trace.modules)
    for path, rows in devices_of.items():
        if len(rows) > 1 and path and known[path] == 1:
            newest, devices = max(rows.values()), tuple(sorted(rows))
            yield Finding(
                rule="split-module",
                severity="warning",
                devices=devices,
                site=queries.site(queries.user(queries.born(newest))),
                op=queries.producer(newest),
                message=sentence("split-module.message", module=path, devices=devices),
                help=sentence("split-module.help", module=path),
            )
