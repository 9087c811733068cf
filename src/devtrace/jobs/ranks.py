"""What the ranks of one job did: which device is whose, which rank has a tensor, and what only all together show."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.diagnosis.findings import Finding, ReportData, sites_of_errors, worst_first
from devtrace.diagnosis.rules.run_rule import run_rule
from devtrace.diagnosis.store import with_report
from devtrace.features import offers
from devtrace.trace.tables import Ints
from devtrace.trace.views import rank_of_ops


@dataclass(frozen=True)
class Ranks:
    """A trace of several ranks, read by rank. -1 is no rank, or no device."""

    queries: TraceQueries

    @cached_property
    def of_op(self) -> Ints:
        return rank_of_ops(self.queries.trace)

    @cached_property
    def of_tensor(self) -> Ints:
        """Return the rank whose ops read or made each tensor; no two ranks share one."""
        ranks = np.full(len(self.queries.trace.tensors), -1, dtype=np.int32)
        for column in ("inputs", "outputs"):
            rows = self.queries.trace.ops.lists(column)
            ranks[rows.flat] = self.of_op[rows.rows]
        return ranks

    @cached_property
    def own_device(self) -> dict[int, int]:
        """Return for each rank the accelerator on which it ran most ops."""
        devices, on_device = self.queries.trace.ops.ints("device"), self.queries.on_a_device
        ranks = [rank for rank in np.unique(self.of_op).tolist() if rank >= 0]
        op_counts = {rank: np.bincount(devices[(self.of_op == rank) & on_device]) for rank in ranks}
        return {rank: int(counts.argmax()) for rank, counts in op_counts.items() if len(counts)}


def with_findings_of_the_job(report: ReportData) -> ReportData:
    """Add what no rank alone shows, unless the trace carries it, or an error tells the same."""
    queries = TraceQueries(report.trace)
    ranks = Ranks(queries)
    if len({*report.trace.threads.ints("rank").tolist()}) < 2:
        return report
    findings: list[Finding] = []
    notes: list[str] = []
    for slug, load in offers("job rule").items():
        run_rule(load, (queries, ranks), slug, findings, notes)
    known = {(finding.rule, finding.site) for finding in report.findings}
    known_sites = sites_of_errors(report.findings)
    new = [each for each in findings if (each.rule, each.site) not in known and each.site not in known_sites]
    if not new and not notes:
        return report
    return with_report(report.trace, worst_first((*report.findings, *new)), report.ledger, notes)
