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
"""So many ops of an optimizer may make numbers before it takes a tensor."""


@dataclass(frozen=True)
class Pace:
    """Pace of a line among the steps around it."""

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
        """Return how many steps began between each op and the next, by the marks that tell the most of them apart.

        Of two optimizers that one line steps each has its own marks, but for its first step, which makes its state.
        """
        found = [np.diff(np.searchsorted(group, ops)) for group in self.groups]
        none = np.zeros(max(len(ops) - 1, 0), dtype=np.int64)
        most = max(((counts > 0).sum() for counts in found), default=0)
        close = (counts for counts in found if 0 < most <= (counts > 0).sum() + 1 and counts.any())
        return min(
            close, key=lambda counts: (np.median(counts[counts > 0]), -(counts > 0).sum(), counts.sum()), default=none
        )


@dataclass(frozen=True, eq=False)
class Steps:
    """Steps of one trace."""

    queries: TraceQueries

    def pace(self, ops: Rows, found: SourceNode, times: int) -> Pace:
        """Return the pace of the ops of a line; `times` is their exact number, which may be above the recorded."""
        counted = [(marks, marks.between(ops)) for marks in self._marks]
        # Of a line that runs once in a step, most gaps hold the mark of a step; of one that runs often in it, some.
        for least in (max(len(ops) - 1, 1) / 2, FEWEST - 1):
            for marks, counts in counted:
                if (counts > 0).sum() >= least:
                    scale = times / len(ops)
                    each = max(self._times_of(marks, ops) / scale, 1)
                    return _paced((counts * each).astype(np.int64), marks.limit, scale, trains=marks.train)
        works = (self.queries.trace.ops.ints("device") != self.queries.host) & self.queries.is_kind("compute")
        busy = np.diff(np.cumsum(works)[ops]) > 0
        if not len(busy) or busy.mean() <= 0.5:
            return Pace(1, is_of_each_step=False)
        others = self._times_around(ops, found)
        return _paced(busy.astype(np.int64) * np.maximum(others, 1), 2, times / len(ops), trains=False)

    def _times_of(self, marks: _Marks, ops: Rows) -> float:
        """Return how many steps each recorded one stands for, by what was counted of the lines that mark them."""
        if not len(self.queries.trace.ledger):
            return 1.0
        begun = np.concatenate(marks.groups)
        sites = np.unique(self.queries.op_users[begun[(begun > ops[0]) & (begun < ops[-1])]])
        recorded = int(np.isin(self.queries.op_users, sites).sum())
        return 1 + int(self._folded[sites].sum()) / max(recorded, 1)

    @cached_property
    def _folded(self) -> Rows:
        """Count by site the ops that were counted and are no rows."""
        queries = self.queries
        ledger = queries.trace.ledger
        lists = ledger.lists("ops")
        total = np.zeros(len(queries.trace.sites) + 1, dtype=np.int64)
        np.add.at(total, queries.users[ledger.ints("site")][lists.rows], lists.flat)
        return total

    @cached_property
    def _marks(self) -> tuple[_Marks, ...]:
        optimizer, backward = self.queries.is_phase("optimizer"), self.queries.is_phase("backward")
        runs = np.flatnonzero(_begins(optimizer))  # an optimizer of the user's own has many lines
        return (
            _Marks((runs, *self._by_optimizer(optimizer)), 2, train=True),
            _Marks((np.flatnonzero(_begins(backward)),), 2, train=True),
            # A model may be called more than once in a step.
            _Marks(tuple(self._by_module()), 4, train=False),
        )

    def _by_optimizer(self, chosen: Mask) -> Iterator[Rows]:
        """Yield the begins of steps by their line, and by the first tensor that they take of those that were there."""
        queries, users = self.queries, self.queries.op_users
        changed = np.concatenate([[True], users[1:] != users[:-1]]) if len(users) else np.zeros(0, dtype=bool)
        begins = np.flatnonzero(chosen & (_begins(chosen) | changed))
        taken = [-1] * len(begins)
        for at, begin in enumerate(begins.tolist()):
            rows = (row for op in range(begin, min(begin + _FIRST_OPS, len(users))) for row in queries.inputs(OpId(op)))
            taken[at] = next((queries.base(row) for row in rows if queries.producer(row) < begin), -1)
        for keys in (users[begins], np.array(taken, dtype=np.int64)):
            yield from (begins[keys == key] for key in np.unique(keys).tolist())

    def _by_module(self) -> Iterator[Rows]:
        calls = self.queries.trace.calls
        outermost = np.flatnonzero(calls.ints("parent") < 0)
        modules, begins = calls.ints("module")[outermost], calls.ints("begin")[outermost]
        for module in np.unique(modules).tolist():
            yield np.sort(begins[modules == module])

    def _times_around(self, ops: Rows, found: SourceNode) -> Rows:
        """Return how often the other lines of the same loop ran between each op and the next, if it is in a branch."""
        none = np.zeros(len(ops) - 1, dtype=np.int64)
        loop = next(iter(found.loops), None)
        branch = found.source.nearest(ast.If, found.statement)
        if loop is None or branch is None or loop not in found.source.ancestors(branch):
            return none
        counts = [np.diff(np.searchsorted(begins, ops)) for begins in self._runs_in(loop, found, branch)]
        return min((each for each in counts if each.any()), key=lambda each: int(each.sum()), default=none)

    def _runs_in(self, loop: ast.AST, found: SourceNode, branch: ast.If) -> Iterator[Rows]:
        users = self.queries.op_users
        begun = np.concatenate([[True], users[1:] != users[:-1]])
        for site in np.unique(users[users >= 0]).tolist():
            other = self.queries.source_node(SiteId(site))
            same = other.source is found.source and other.loops[:1] == [loop]
            if same and branch not in other.source.ancestors(other.node):
                yield np.flatnonzero(begun & (users == site))


def _paced(counts: Rows, limit: int, scale: float, *, trains: bool) -> Pace:
    between = counts[counts > 0]
    steps = round((len(between) + 1) * scale)
    return Pace(steps, steps >= FEWEST and bool(np.median(between) < limit), trains)


def _begins(chosen: Mask) -> Mask:
    return cast(Mask, chosen & ~np.concatenate([[False], chosen[:-1]]))
