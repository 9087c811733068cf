"""What one line pays again and again, of one kind.

    for x, y in loader:                       # a step
        total += loss(x.to(device)).item()    # its costs: a copy to the device, a wait; each once in a step

A kind is a column of the ledger: `syncs`, `cpu_compute`, or a direction of copies (`h2d`, `d2h`, `d2d`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Final

import numpy as np

from devtrace.costs.steps import Pace, Steps
from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.evidence.source_text import brief
from devtrace.diagnosis.evidence.trace_queries import HOST, NOWHERE, Rows, SourceNode, TraceQueries
from devtrace.diagnosis.ledger import Tally, directions, on_host, waits
from devtrace.source.matching import match_code
from devtrace.source.vocabulary import is_copied_by
from devtrace.trace.ids import NO_SITE, NO_TENSOR, OpId, SiteId, TensorId
from devtrace.words.text_format import one_line

OFTEN: Final = 10
"""Times from which a line does something again and again."""
AGAIN: Final = 5
"""Copies from which one line's copies are no set-up."""
MANY: Final = 50
STEPS: Final = 5
"""What goes on in fewer steps is a set-up or an evaluation."""
SAMPLE: Final = 20
"""How many of a line's ops are looked at."""
SMALL: Final = 4096
"""Bytes below which a copy costs its launch, not its size (about 10 µs on PCIe, the time that 100 KB take)."""
Names = dict[str, Any]
"""What sentences and templates of advice are filled with. `why`, `culprit` and `severity` go before the row's own."""
_OF_OPS: Final = {"syncs": waits, "cpu_compute": on_host}
"""Kinds whose rows are ops."""


@dataclass(frozen=True, eq=False)
class Cost:
    """Cost of the user's own line `site`, or of a package's `line` that was called from `site`."""

    steps: Steps
    tally: Tally
    kind: str
    site: SiteId
    line: SiteId
    rows: Rows
    """Rows of copies or ops. Those that were folded are only counted."""
    count: int

    @property
    def queries(self) -> TraceQueries:
        return self.steps.queries

    @cached_property
    def ops(self) -> list[OpId]:
        """Recorded ops."""
        return _ops_of(self.queries, self.kind, self.rows).tolist()  # type: ignore[no-any-return]

    @property
    def pairs(self) -> list[tuple[OpId, OpId]]:
        """Return a sample of the recorded ops, in pairs: an op, and the op of the same line that came next."""
        return list(pairwise(self.ops))[:: len(self.ops) // SAMPLE + 1]

    @property
    def is_of_the_user(self) -> bool:
        return self.line == self.site

    @cached_property
    def pace(self) -> Pace:
        return self.steps.pace(np.array(self.ops), self.place, self.count)

    @cached_property
    def runs_again(self) -> bool:
        """Return whether the user's line runs again: it is in a loop, or other lines of its function ran in between."""
        queries, place, site = self.queries, self.queries.source_node(self.site), self.queries.site(self.site)
        if place is NOWHERE or site is None or place.loops:
            return place is not NOWHERE
        sites_between, sites_beside = queries.op_users[self.ops[0] : self.ops[-1] + 1], queries.sites_beside(site)
        lines = queries.trace.sites.ints("line")[sites_beside[np.isin(sites_beside, sites_between)]]
        return site.function != "" and bool((lines != site.line).any())

    @cached_property
    def is_of_each_step(self) -> bool:
        if len(self.ops) < 2 or self.place is NOWHERE:
            return False
        return self.pace.is_of_each_step and (self.is_of_the_user or self.runs_again)

    @property
    def is_of_many_steps(self) -> bool:
        """Return whether the line has the cost in each of many steps, some of which were recorded."""
        is_often = self.count >= OFTEN and len(self.ops) >= STEPS
        return is_often and self.is_of_each_step and self.pace.steps >= STEPS

    @property
    def trains_alone(self) -> bool:
        """Return whether one line of the user's leaves all of the training to a package: `trainer.fit(model)`."""
        if not self.queries.package(self.line):
            return False
        queries, span = self.queries, slice(self.ops[0], self.ops[-1] + 1)
        is_training = queries.is_phase("backward") | queries.is_phase("optimizer")
        callers = queries.cost_users[span][is_training[span]]
        return len(callers) > 0 and bool((callers == queries.op_users[self.ops[0]]).all())

    # The code of the line.

    @cached_property
    def place(self) -> SourceNode:
        """Return the line in its source; without source it is no code at all."""
        return self.queries.source_node(self.line)

    @property
    def node(self) -> ast.AST:
        return self.place.node

    @cached_property
    def code(self) -> Code | None:
        """Return the source of the line, if it is the user's to edit."""
        place = self.queries.own_node(self.line)
        return place.code if place is not NOWHERE else None

    @property
    def text(self) -> str:
        """Return the code that waits or copies, as one line of text: the condition of an `if`."""
        node, site = self.node, self.queries.site(self.line)
        if self.place is NOWHERE:
            return one_line(site.text) if site is not None else ""
        if isinstance(node, ast.If | ast.While | ast.Assert | ast.FormattedValue):
            node = node.value if isinstance(node, ast.FormattedValue) else node.test
        text = self.place.source.segment(node)
        return one_line(text.split("\n")[0] if isinstance(node, ast.stmt) else text)

    @property
    def moved(self) -> ast.expr | None:
        """Return the code of what a line copies by a method: `x[:n]` of `x[:n].to(device)`."""
        move = match_code("$x.$move(...)", self.node)
        return move["x"] if move is not None and is_copied_by(move["move"]) else None

    @property
    def name(self) -> str:
        """Return what the line calls the tensor that it copies, `x` of `x[:n].to(device)`, else all of its code."""
        return brief(self.place.source.segment(self.whole_of(self.moved)) if self.moved is not None else self.text)

    @property
    def part(self) -> str:
        """Return the code of the part that the line copies, `x[:n]` of `x[:n].to(device)`, else all of its code."""
        return brief(self.place.source.segment(self.moved) if self.moved is not None else self.text)

    def whole_of(self, part: ast.expr) -> ast.expr:
        """Return the code of the tensor of which the line copies a part: `x` of `x[:n]`, but all of `tables[n]`."""
        while isinstance(part, ast.Subscript) and id(part) in self._made_on_the_way:
            part = part.value
        return part

    @cached_property
    def _made_on_the_way(self) -> set[int]:
        """Ids of the code that made what the line copies: `x[:n]` is one if an op took this part of a tensor `x`."""
        queries, tensor = self.queries, next(iter(self.carried), NO_TENSOR)
        ancestors = queries.ancestors(tensor) if tensor >= 0 else ()
        return {id(queries.op_node(queries.producer(ancestor)).node) for ancestor in ancestors}

    # Of copies.

    @property
    def carried(self) -> list[TensorId]:
        """Return the tensors that the line copied, each as often as it was copied."""
        return [tensor for op in dict.fromkeys(self.ops) for tensor in self.queries.carried(op)]

    @cached_property
    def bytes(self) -> int:
        """Bytes of the recorded copies."""
        return 0 if self.kind in _OF_OPS else int(self.queries.trace.copies.ints("bytes")[self.rows].sum())

    @property
    def all_bytes(self) -> int:
        """Return about how many bytes all copies had, the folded ones too."""
        return self.bytes * self.count // max(len(self.ops), 1)

    @property
    def is_small(self) -> bool:
        return self.bytes <= SMALL * len(self.ops)

    @property
    def devices(self) -> tuple[str, ...]:
        """Return the devices that the line waits for, or copies from and to: the CPU first."""
        trace, names = self.queries.trace, self.queries.device_names
        columns = [(trace.ops, "device")] if self.kind in _OF_OPS else [(trace.copies, "from"), (trace.copies, "to")]
        devices = {names[device] for table, column in columns for device in table.ints(column)[self.rows]}
        return tuple(sorted(devices, key=lambda name: (name != HOST, name)))

    # By the line that does it.

    def parts(self) -> list[Cost]:
        """Return this cost by the lines that ran the ops, this one or a package's; the most frequent first.

        An op of the backward pass counts for the line that called backward.
        """
        queries, ops = self.queries, np.array(self.ops, dtype=np.int64)
        sites, forward = queries.trace.ops.ints("site")[ops], queries.trace.ops.ints("forward")[ops]
        has_no_line = queries.is_phase("backward")[ops] & ((forward >= 0) | (sites < 0))  # see `callers_of_backward`
        line_of_op = np.where(has_no_line, queries.cost_users[ops], sites)
        lines, recorded = np.unique(line_of_op, return_counts=True)
        counts = {SiteId(int(line)): int(n) + self._folded(line) for line, n in zip(lines, recorded, strict=True)}
        users_line = queries.user(lines[0]) if len(lines) else NO_SITE
        if users_line in counts:
            counts[users_line] += self.count - sum(counts.values())  # what is of no package's line
        order = map(SiteId, lines[np.argsort(-recorded, kind="stable")].tolist())
        return [replace(self, line=line, rows=self.rows[line_of_op == line], count=counts[line]) for line in order]

    def _folded(self, line: SiteId) -> int:
        ledger = self.queries.trace.ledger
        return int(ledger.ints(self.kind)[ledger.ints("site") == line].sum()) if len(ledger) else 0

    def without(self, parts: Sequence[Cost]) -> Cost:
        """Return the cost of the line without some of its parts."""
        rows_of_parts = np.concatenate([self.rows[:0], *(part.rows for part in parts)])
        count = self.count - sum(part.count for part in parts)
        return replace(self, rows=self.rows[~np.isin(self.rows, rows_of_parts)], count=count)


def together(parts: Sequence[Cost]) -> Cost:
    """Return the cost of one package's line to which several lines of the user's led."""
    rows = np.sort(np.concatenate([part.rows for part in parts]))
    return replace(parts[0], rows=rows, count=sum(part.count for part in parts))


def costs(queries: TraceQueries, tally: Tally, kind: str) -> Iterator[Cost]:
    """Yield the cost of each line of the user's that has costs of a kind."""
    rows = np.flatnonzero(_OF_OPS[kind](queries) if kind in _OF_OPS else directions(queries)[kind])
    users = queries.op_users if kind == "cpu_compute" else queries.cost_users
    sites = users[_ops_of(queries, kind, rows)]
    order = np.argsort(sites, kind="stable")
    bounds = np.searchsorted(sites[order], np.arange(len(queries.trace.sites) + 1))
    steps = Steps(queries)
    for site in tally.sites(kind):
        rows_of_line = rows[order[bounds[site] : bounds[site + 1]]]
        yield Cost(steps, tally, kind, site, site, rows_of_line, int(tally[kind][site]))


def _ops_of(queries: TraceQueries, kind: str, rows: Rows) -> Rows:
    return rows if kind in _OF_OPS else queries.trace.copies.ints("op")[rows].astype(np.int64)
