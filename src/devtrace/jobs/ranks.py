"""What the ranks of one job did: which device is whose, and which rank has a tensor."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from devtrace.diagnosis.evidence.model_on_host import on_a_device
from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.trace.tables import Ints


@dataclass(frozen=True)
class Ranks:
    """A trace of several ranks, read by rank. -1 is no rank, or no device."""

    queries: TraceQueries

    @cached_property
    def numbers(self) -> list[int]:
        """Ranks that ran an op, in order."""
        return [int(rank) for rank in np.unique(self.of_op) if rank >= 0]

    @cached_property
    def of_op(self) -> Ints:
        of_thread = np.append(self.queries.trace.threads.ints("rank").astype(np.int32), np.int32(-1))
        return of_thread[self.queries.trace.ops.ints("thread")]

    @cached_property
    def of_tensor(self) -> Ints:
        """Return the rank whose ops read or made each tensor; no two ranks share one."""
        ranks = np.full(len(self.queries.trace.tensors), -1, dtype=np.int32)
        for column in ("inputs", "outputs"):
            rows = self.queries.trace.ops.lists(column)
            ranks[rows.flat] = np.repeat(self.of_op, np.diff(rows.offsets))
        return ranks

    @cached_property
    def own_device(self) -> dict[int, int]:
        """Return for each rank the accelerator on which it ran most ops."""
        devices, there = self.queries.trace.ops.ints("device"), on_a_device(self.queries)
        known = {rank: np.bincount(devices[(self.of_op == rank) & there]) for rank in self.numbers}
        return {rank: int(counts.argmax()) for rank, counts in known.items() if len(counts)}
