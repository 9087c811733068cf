"""What findings repeat of a trace: the op that an error is of, and a tensor as what the finding is about."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.diagnosis.findings import Culprit, Site


def of_error(queries: TraceQueries, op: int, site: int | None = None) -> dict[str, Any]:
    """Return what is the same in each finding of an error: the op that raised it, and where that is."""
    at = queries.op_site(op) if site is None else int(site)
    return {"severity": "error", "site": queries.site(at), "op": op, "ops": (op,)}


def as_culprit(queries: TraceQueries, row: int, names: Sequence[str], born: Site | None = None, **rest: Any) -> Culprit:
    """Return a tensor as what a finding is about, by its names, the best first."""
    tensor = queries.trace.tensors[row]
    culprit = Culprit(names[0], tuple(names), str(tensor.device), tuple(tensor.shape), tensor.dtype, born)
    return replace(culprit, **rest)
