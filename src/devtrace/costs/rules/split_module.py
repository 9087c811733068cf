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
    by_module: dict[str, dict[str, TensorId]] = defaultdict(dict)  # of each module a tensor on each of its devices
    newest_of_name = dict(modules.tensors(queries, "parameter", "buffer"))  # a moved one is there for each device
    for name, tensor in newest_of_name.items():
        if queries.dims[tensor] > 0 and queries.device(tensor) != META:
            by_module[name.rpartition(".")[0]].setdefault(queries.device(tensor), tensor)
    # A replaced module and its successor have one path.
    modules_of_path = Counter(str(module.path) for module in queries.trace.modules)
    for path, by_device in by_module.items():
        if len(by_device) > 1 and path and modules_of_path[path] == 1:
            newest, devices = max(by_device.values()), tuple(sorted(by_device))
            yield Finding(
                rule="split-module",
                severity="warning",
                devices=devices,
                site=queries.site(queries.user(queries.born(newest))),
                op=queries.producer(newest),
                message=sentence("split-module.message", module=path, devices=devices),
                help=sentence("split-module.help", module=path),
            )
