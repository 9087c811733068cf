"""Steps of a loop, from the trace alone: does a line run again in each of them, or now and then?

A step is told by what repeats around the line: an optimizer's step, else a backward pass, else an outermost call of a
module, else work of the device. How the source is written plays no part, except where nothing of these ran.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final, cast

import numpy as np

from devtrace.diagnosis.evidence.trace_queries import Mask, Rows, SourceNode, TraceQueries
from devtrace.trace.ids import OpId, SiteId

FEWEST: Final = 3
"""Fewer steps are no loop to speak of."""
_FIRST_OPS: Final = 8
"""At most so many ops of an optimizer make numbers before one takes a tensor."""


@dataclass(frozen=True)
class Pace:
    """Pace of a line: how many steps are around it, whether it runs in each of them, and whether these train."""

    steps: int
    is_of_each_step: bool
    trains: bool = False


@dataclass(frozen=True)
class _Marks:
    """Ops at which steps begin, by the line or module that marks them.

    A line with `limit` of them from one run to the next runs now and then.
    """

    groups: tuple[Rows, ...]
    limit: int
    train: bool

    def between(self, ops: Rows) -> Rows:
        """Return how many steps began between each op and the next, by the group that has marks in the most gaps.

        Of two optimizers that one line steps each has its own marks, but for its first step, which makes its state.
        """
        by_group = [np.diff(np.searchsorted(marks, ops)) for marks in self.groups]
        none = np.zeros(max(len(ops) - 1, 0), dtype=np.int64)
        most = max(((counts > 0).sum() for counts in by_group), default=0)
        best = (counts for counts in by_group if 0 < most <= (counts > 0).sum() + 1 and counts.any())
        return min(
            best, key=lambda counts: (np.median(counts[counts > 0]), -(counts > 0).sum(), counts.sum()), default=none
        )


@dataclass(frozen=True, eq=False)
class Steps:
    """Steps of one trace."""

    queries: TraceQueries

    def pace(self, ops: Rows, place: SourceNode, times: int) -> Pace:
        """Return the pace of the ops of a line; `times` is their exact number, which may be above the recorded."""
        counted = [(marks, marks.between(ops)) for marks in self._marks]
        # Of a line that runs once in a step, most gaps hold the mark of a step; of one that runs often in it, some.
        for fewest_gaps in (max(len(ops) - 1, 1) / 2, FEWEST - 1):
            for marks, counts in counted:
                if (counts > 0).sum() >= fewest_gaps:
                    scale = times / len(ops)
                    factor = max(self._steps_per_recorded_step(marks, ops) / scale, 1)
                    return _pace_of((counts * factor).astype(np.int64), marks.limit, scale, trains=marks.train)
        is_device_work = (self.queries.trace.ops.ints("device") != self.queries.host) & self.queries.is_kind("compute")
        has_work = np.diff(np.cumsum(is_device_work)[ops]) > 0  # of each gap between two ops
        if not len(has_work) or has_work.mean() <= 0.5:
            return Pace(1, is_of_each_step=False)
        rounds = self._runs_beside_branch(ops, place)
        return _pace_of(has_work.astype(np.int64) * np.maximum(rounds, 1), 2, times / len(ops), trains=False)

    def _steps_per_recorded_step(self, marks: _Marks, ops: Rows) -> float:
        """Return how many steps each recorded one stands for: 3.0 if two of three at the marks' lines were folded."""
        if not len(self.queries.trace.ledger):
            return 1.0
        begins = np.concatenate(marks.groups)
        sites = np.unique(self.queries.op_users[begins[(begins > ops[0]) & (begins < ops[-1])]])
        recorded = int(np.isin(self.queries.op_users, sites).sum())
        return 1 + int(self._folded[sites].sum()) / max(recorded, 1)

    @cached_property
    def _folded(self) -> Rows:
        """Return for each site of the user's how many ops the ledger counted that were folded, and have no rows."""
        queries = self.queries
        ledger = queries.trace.ledger
        counts = ledger.lists("ops")
        folded = np.zeros(len(queries.trace.sites) + 1, dtype=np.int64)
        np.add.at(folded, queries.users[ledger.ints("site")][counts.rows], counts.flat)
        return folded

    @cached_property
    def _marks(self) -> tuple[_Marks, ...]:
        optimizer, backward = self.queries.is_phase("optimizer"), self.queries.is_phase("backward")
        runs = np.flatnonzero(_first_of_each_run(optimizer))  # an optimizer of the user's own has many lines
        return (
            _Marks((runs, *self._by_optimizer(optimizer)), 2, train=True),
            _Marks((np.flatnonzero(_first_of_each_run(backward)),), 2, train=True),
            # A model may be called more than once in a step.
            _Marks(tuple(self._by_module()), 4, train=False),
        )

    def _by_optimizer(self, in_optimizer: Mask) -> Iterator[Rows]:
        """Yield the ops at which steps begin, grouped by their line, then by the first older tensor that they take."""
        queries, users = self.queries, self.queries.op_users
        is_new_line = np.concatenate([[True], users[1:] != users[:-1]]) if len(users) else np.zeros(0, dtype=bool)
        begins = np.flatnonzero(in_optimizer & (_first_of_each_run(in_optimizer) | is_new_line))
        tensors = [-1] * len(begins)
        for step, begin in enumerate(begins.tolist()):
            ops = map(OpId, range(begin, min(begin + _FIRST_OPS, len(users))))
            inputs = (tensor for op in ops for tensor in queries.inputs(op))
            tensors[step] = next((queries.base(tensor) for tensor in inputs if queries.producer(tensor) < begin), -1)
        for keys in (users[begins], np.array(tensors, dtype=np.int64)):
            yield from (begins[keys == key] for key in np.unique(keys).tolist())

    def _by_module(self) -> Iterator[Rows]:
        calls = self.queries.trace.calls
        outermost = np.flatnonzero(calls.ints("parent") < 0)
        modules, begins = calls.ints("module")[outermost], calls.ints("begin")[outermost]
        for module in np.unique(modules).tolist():
            yield np.sort(begins[modules == module])

    def _runs_beside_branch(self, ops: Rows, place: SourceNode) -> Rows:
        """Return how often the loop of a line in an `if` ran beside it, between each op and the next; else zeros."""
        none = np.zeros(len(ops) - 1, dtype=np.int64)
        loop = next(iter(place.loops), None)
        branch = place.source.nearest(ast.If, place.statement)
        if loop is None or branch is None or loop not in place.source.ancestors(branch):
            return none
        by_line = [np.diff(np.searchsorted(runs, ops)) for runs in self._runs_of_other_lines(loop, place, branch)]
        return min((counts for counts in by_line if counts.any()), key=lambda counts: int(counts.sum()), default=none)

    def _runs_of_other_lines(self, loop: ast.AST, place: SourceNode, branch: ast.If) -> Iterator[Rows]:
        """Yield for each line of a loop that is not in the branch the ops at which it began to run."""
        users = self.queries.op_users
        is_new_line = np.concatenate([[True], users[1:] != users[:-1]])
        for site in np.unique(users[users >= 0]).tolist():
            other = self.queries.source_node(SiteId(site))
            is_in_loop = other.source is place.source and other.loops[:1] == [loop]
            if is_in_loop and branch not in other.source.ancestors(other.node):
                yield np.flatnonzero(is_new_line & (users == site))


def _pace_of(counts: Rows, limit: int, scale: float, *, trains: bool) -> Pace:
    """Return the pace of a line by how many steps began in each gap between its ops."""
    in_gaps = counts[counts > 0]
    steps = round((len(in_gaps) + 1) * scale)
    return Pace(steps, steps >= FEWEST and bool(np.median(in_gaps) < limit), trains)


def _first_of_each_run(mask: Mask) -> Mask:
    """Return `[0, 1, 0, 0, 1]` for `[0, 1, 1, 0, 1]`."""
    return cast(Mask, mask & ~np.concatenate([[False], mask[:-1]]))
