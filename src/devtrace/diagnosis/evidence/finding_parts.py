"""Parts that findings share: the op of an error, and a tensor as the culprit."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.diagnosis.findings import Culprit, Site
from devtrace.trace.ids import OpId, SiteId, TensorId


def of_error(queries: TraceQueries, op: OpId, site: SiteId | None = None) -> dict[str, Any]:
    """Return the fields that all findings of an error share: the op that raised, and its site."""
    site_id = queries.op_site(op) if site is None else site
    return {"severity": "error", "site": queries.site(site_id), "op": op, "ops": (op,)}


def as_culprit(
    queries: TraceQueries, row: TensorId, names: Sequence[str], born: Site | None = None, **rest: Any
) -> Culprit:
    """Return a tensor as a culprit, with its names, best first."""
    tensor = queries.trace.tensors[row]
    culprit = Culprit(names[0], tuple(names), str(tensor.device), tuple(tensor.shape), tensor.dtype, born)
    return replace(culprit, **rest)
