"""What a page takes of a job that has more ops than a page can show: of ranks that did the same, one rank.

The ledger and the findings are of all ops.
"""

from dataclasses import replace
from typing import Any, Final

import numpy as np

from devtrace.trace.format import encode
from devtrace.trace.subset import cut
from devtrace.trace.tables import TraceData
from devtrace.trace.views import alike, rank_of_ops
from devtrace.words.catalogue import sentence

MOST_OPS: Final = 1_000_000
"""Ops that a page shows within a second or two."""


def encoded(trace: TraceData, most: int = MOST_OPS) -> dict[str, Any]:
    """Return a trace as a page takes it: whole, or without the ranks that have no room."""
    if len(trace.ops) <= most or len(np.unique(trace.threads.ints("rank"))) < 2:
        return encode(trace)
    alarms = [finding for finding in trace.findings or () if finding.get("severity") != "note"]
    flagged = [op for op in (int(finding.get("op", -1)) for finding in alarms) if op >= 0]
    groups = alike(trace, flagged)
    of_op = rank_of_ops(trace)
    ops = np.bincount(of_op[of_op >= 0])[list(groups)]
    kept = list(groups)[: max(1, int((np.cumsum(ops) <= most).sum()))]  # the first in any case
    keep = np.isin(of_op, kept) | (of_op < 0)
    keep[flagged] = True
    shorter = replace(cut(trace, keep), truncated=trace.truncated)
    left_out = sum(map(len, groups.values())) - len(kept)
    note = sentence("note.ranks-left-out", count=left_out, kept=len(kept), most=most)
    return encode(replace(shorter, notes=(*trace.notes, note)))
