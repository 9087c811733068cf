"""The copies of one direction from one line, and the habits that show them to be needless.

The three rules for copies share this file. Every site is counted; a habit makes the finding a warning.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from devtrace.diagnosis.evidence.trace_queries import Rows, TraceQueries
from devtrace.diagnosis.findings import Culprit, Finding
from devtrace.diagnosis.ledger import Tally, directions
from devtrace.diagnosis.slugs import RuleSlug
from devtrace.words.text_format import format_bytes, pluralize

AGAIN: Final = 5
"""So many copies of one tensor from one line are a habit, not a set-up."""
MANY: Final = 50
SMALL: Final = 4096
"""Bytes below which a copy costs its launch, not its size (about 10 µs on PCIe, the time that 100 KB take)."""


@dataclass(frozen=True)
class CopiesOfALine:
    """Copies of one direction (h2d, d2h, d2d) from one line of the user's."""

    queries: TraceQueries
    tally: Tally
    direction: str
    site: int
    rows: Rows

    @property
    def count(self) -> int:
        return int(self.tally[self.direction][self.site])

    @cached_property
    def ops(self) -> list[int]:
        """Recorded ops, which may be fewer than were counted."""
        return [int(op) for op in self.queries.trace.copies.ints("op")[self.rows]]

    @property
    def bytes(self) -> int:
        return int(self.queries.trace.copies.ints("bytes")[self.rows].sum())

    @property
    def devices(self) -> tuple[str, ...]:
        copies, names = self.queries.trace.copies, self.queries.device_names
        return tuple(sorted({names[row] for column in ("from", "to") for row in copies.ints(column)[self.rows]}))


@dataclass(frozen=True)
class Habit:
    """Why the copies of a line need not be."""

    message: str
    help: str
    culprit: Culprit | None = None


def findings(
    queries: TraceQueries,
    tally: Tally,
    direction: str,
    to_finding: Callable[[CopiesOfALine], Finding],
) -> Iterator[Finding]:
    """Yield a finding for each line that copied in a direction."""
    chosen = np.flatnonzero(directions(queries)[direction])
    sites = queries.cost_users[queries.trace.copies.ints("op")[chosen]]
    order = np.argsort(sites, kind="stable")
    bounds = np.searchsorted(sites[order], np.arange(len(queries.trace.sites) + 1))
    for site in tally.sites(direction):
        rows = chosen[order[bounds[site] : bounds[site + 1]]]
        yield to_finding(CopiesOfALine(queries, tally, direction, site, rows))


def finding(rule: RuleSlug, copies: CopiesOfALine, where: str, habit: Habit | None, remark: str = "") -> Finding:
    """Word the copies of a line: a warning if they are a habit."""
    ops = copies.ops
    copied = copies.bytes * copies.count // max(len(ops), 1)
    message = f"{pluralize(copies.count, 'copy', 'copies')} {where}, {format_bytes(copied)} in all"
    return Finding(
        rule=rule,
        severity="warning" if habit else "note",
        cause="",
        devices=copies.devices,
        site=copies.queries.site(copies.site),
        op=ops[0] if ops else -1,
        culprit=habit.culprit if habit else None,
        count=copies.count,
        bytes=copied,
        message=message + (f": {habit.message}" if habit else f"{remark}."),
        help=habit.help if habit else "",
        ops=tuple(ops),
    )


def of_one_tensor(copies: CopiesOfALine) -> Habit | None:
    """Find the same tensor over and over: the very same, or in a module's forward a part of it."""
    queries, ops = copies.queries, copies.ops
    if copies.count < AGAIN or not ops:
        return None
    sources = [queries.inputs(op)[0] for op in ops if queries.inputs(op)]
    bases = {queries.base(row) for row in sources}
    if len(sources) < AGAIN * len(bases) or not _are_unchanged(queries, bases, ops):
        return None
    if any(queries.base(row) != row for row in sources) and not _is_part_of_a_module(copies):
        return None
    row = min(bases)
    name = str(queries.trace.tensors.raw("name", row)) or _source_text(copies)
    tensor, born = queries.trace.tensors[row], queries.site(queries.born(row))
    culprit = Culprit(name, (name,), tensor.device, tuple(tensor.shape), tensor.dtype, born)
    if tensor.role == "parameter":
        help = f"move {name.rpartition('.')[0] or 'its module'} to the device where it works"
    else:
        help = f"move {name} once: register it as a buffer, or keep the moved tensor"
    return Habit(f"{name} is the same tensor each time.", help, culprit)


def _are_unchanged(queries: TraceQueries, bases: set[int], ops: list[int]) -> bool:
    """Return whether nothing wrote to the tensors between their copies."""
    outputs = queries.trace.ops.lists("outputs")
    first, last = min(ops), max(ops)
    written = outputs.flat[outputs.offsets[first] : outputs.offsets[last + 1]]
    producers = queries.trace.tensors.ints("producer")
    return not any(row in bases and producers[row] < first for row in np.unique(written).tolist())


def _is_part_of_a_module(copies: CopiesOfALine) -> bool:
    """Return whether it is a part of a module's own tensor: `self.cos[:n].to(x.device)`, not a data set's batch."""
    found = copies.queries.source_node(copies.site)
    calls = copies.queries.trace.ops.ints("call")[copies.ops]
    if found is None or not bool((calls >= 0).all()):
        return False
    root = found.node
    while isinstance(root, ast.Call | ast.Attribute | ast.Subscript):
        root = root.func if isinstance(root, ast.Call) else root.value
    return isinstance(root, ast.Name) and root.id == "self"


def _source_text(copies: CopiesOfALine) -> str:
    """Return what the line calls the tensor that it copies."""
    found = copies.queries.source_node(copies.site)
    node = found.node if found is not None else None
    if found is None or not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return "it"
    owner = node.func.value
    while isinstance(owner, ast.Subscript):
        owner = owner.value
    return found.source.segment(owner) or "it"


def of_single_elements(copies: CopiesOfALine) -> Habit | None:
    """Find very many, very small copies, with next to nothing between them."""
    if copies.count < MANY or copies.bytes > SMALL * len(copies.ops):
        return None
    if len(copies.ops) < 2 or np.median(np.diff(copies.ops)) > 6:
        return None
    return Habit("each of a few bytes.", "gather the values first (torch.stack, torch.tensor of a list) and copy once")


def is_of_ddp(queries: TraceQueries, op: int) -> bool:
    """Return whether DistributedDataParallel itself ran an op."""
    call = queries.trace.ops[op].call
    return call is not None and str(call.module.type) == "DistributedDataParallel"
