"""Replays the recorded ops with a fix's moves: which op would then mix devices?

What is computed from a moved tensor moves with it, up to a copy that names its device. So a fix that only moves the
error to an earlier line, or mends one of two inputs, is found without running the program. Only the ops that take what
moved are visited, however many the trace has.

Then the failing line would go on: what else it reads on the odd device it would fail over next.
"""

import ast
import heapq
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from devtrace.diagnosis.evidence import origins
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.mismatch import combined, without_indexes
from devtrace.diagnosis.evidence.mismatch_case import MismatchCase
from devtrace.diagnosis.evidence.torchs_sentences import LENGTHS_ON_HOST, PINNING
from devtrace.diagnosis.evidence.trace_queries import HOST, TraceQueries
from devtrace.diagnosis.fixes.fix import Moved, failing_frame
from devtrace.source.matching import called_name, only, operands, owner_of
from devtrace.source.parsing import Source
from devtrace.source.safe_values import evaluate, values
from devtrace.source.vocabulary import FACTS, TAKES_VALUES, leaves_device
from devtrace.trace.ids import OpId, SiteId, TensorId

_KINDS: Final = {LENGTHS_ON_HOST: "lengths", PINNING: "pinned"}


class Conflict(NamedTuple):
    """An op that would mix devices, and its inputs that would be on the odd one."""

    op: OpId
    rows: tuple[TensorId, ...]


class Step(NamedTuple):
    """An op as a replay sees it."""

    op: OpId
    name: str
    inputs: list[TensorId]
    outputs: list[TensorId]
    rows: list[TensorId]
    """Inputs that have dimensions."""
    following: list[TensorId]
    """Outputs on the device of the input that leads."""
    kind: str

    @property
    def leading(self) -> TensorId:
        return (self.rows or self.inputs)[0]


@dataclass(frozen=True)
class RecordedSteps:
    """Ops of a trace, each read once for all replays."""

    queries: TraceQueries
    _steps: dict[OpId, Step] = field(default_factory=dict)

    def step(self, op: OpId) -> Step:
        if op not in self._steps:
            self._steps[op] = self._read(op)
        return self._steps[op]

    @cached_property
    def followers(self) -> dict[TensorId, list[OpId]]:
        """Ops of factories by the tensor whose device they ask for, which they then follow. Most lines ask for none."""
        queries, found = self.queries, dict[TensorId, list[OpId]]()
        created = np.flatnonzero(queries.is_kind("create")[: queries.failed])
        sites = queries.trace.ops.ints("site")[created]
        asking = [site for site in sorted({*sites.tolist()}) if origins.leader(queries, SiteId(site))]
        for op in map(OpId, created[np.isin(sites, asking)].tolist()):
            row = origins.followed(queries, op)
            if row >= 0:
                found.setdefault(row, []).append(op)
        return found

    @cached_property
    def _followed(self) -> dict[OpId, TensorId]:
        return {op: row for row, ops in self.followers.items() for op in ops}

    def _read(self, op: OpId) -> Step:
        queries, name = self.queries, self.queries.op_name(op)
        inputs = [self._followed[op]] if op in self._followed else queries.inputs(op)
        rows = [row for row in inputs if queries.dims[row] != 0]
        trait = queries.trait((rows or inputs)[0]) if inputs else ""
        outputs = queries.outputs(op)
        following = [row for row in outputs if not inputs or queries.trait(row) == trait]
        is_copy = queries.kind(op) == "copy" or "copy_" in name
        kind = _KINDS.get(name) or ("copy" if is_copy else "")
        return Step(op, name, inputs, outputs, rows, following, kind)


class Replay:
    """Runs the ops up to the failing one; `conflict` is the first that would mix devices, None if all would run."""

    def __init__(self, recorded: RecordedSteps, case: MismatchCase, moved: Iterable[Moved]) -> None:
        self.recorded = recorded
        self.case = case
        self.queries = case.queries
        self.there: set[TensorId] = set()  # rows that are on the expected device now, and were not
        self._next: list[OpId] = []  # ops that take one of them
        self.conflict = self._run(sorted(moved, key=lambda each: -each.since))

    def _run(self, waiting: list[Moved]) -> Conflict | None:
        last = -1
        while waiting or self._next:
            op = min([*self._next[:1], *(each.since for each in waiting[-1:])])
            if op >= self.case.op:
                break
            while waiting and waiting[-1].since <= op:
                self._arrive(waiting.pop().row, op)
            if not self._next or self._next[0] != op:
                continue
            op = heapq.heappop(self._next)
            if op == last:
                continue
            last, step = op, self.recorded.step(op)
            odd = self.mixed(step)
            if odd:
                return Conflict(op, odd)
            for row in self.follow(step):
                self._arrive(row, OpId(op + 1))
        self.there.update(each.row for each in waiting if each.since <= self.case.op)
        self.make_for_the_failing_op()
        left = tuple(row for row in self.failing_inputs() if self.trait_now(row) != self.case.expected_trait)
        return Conflict(self.case.op, left) if left else None

    def _arrive(self, row: TensorId, op: OpId) -> None:
        if row not in self.there:
            self.there.add(row)
            for taker in (*self.queries.takers(row), *self.recorded.followers.get(row, ())):
                if op <= taker < self.case.op:
                    heapq.heappush(self._next, taker)

    def make_for_the_failing_op(self) -> None:
        """Let tensors that torch's own code makes for the failing op follow that op's other inputs.

        `nn.GRU` makes its first hidden state at the user's call of it.
        """
        for step in self.beside_the_failing_op():
            self.there.update(self.follow(step) if step.inputs else step.following)

    def beside_the_failing_op(self) -> Iterator[Step]:
        """Yield the steps of the failing op's site that came just before it, if anything has moved."""
        site_of, first = self.queries.trace.ops.ints("site"), self.case.op
        while self.there and first > 0 and site_of[first - 1] == site_of[self.case.op]:
            first = OpId(first - 1)
        yield from map(self.recorded.step, map(OpId, range(first, self.case.op)))

    def failing_inputs(self) -> list[TensorId]:
        return [row for row in combined(self.queries, self.case.op, self.trait_now) if self.queries.dims[row] != 0]

    def trait_now(self, row: TensorId) -> str:
        return self.case.expected_trait if row in self.there else self.queries.trait(row)

    def mixed(self, step: Step) -> tuple[TensorId, ...]:
        """Return the odd inputs of an op that would mix devices after the move.

        And moved inputs that the op takes only on their old device.
        """
        if step.kind in ("lengths", "pinned") and self.case.expected_trait != HOST:
            on_host = step.inputs[1:] if step.kind == "lengths" else step.inputs
            return tuple(row for row in on_host if row in self.there)
        if step.kind in ("copy", "pinned"):
            return ()
        rows = [row for row in without_indexes(step.name, step.inputs, self.trait_now) if row in step.rows]
        if len({self.trait_now(row) for row in rows}) < 2 or len({self.queries.trait(row) for row in rows}) > 1:
            return ()
        return tuple(row for row in rows if self.trait_now(row) != self.case.expected_trait)

    def follow(self, step: Step) -> list[TensorId]:
        """Return the outputs that follow their inputs to the expected device."""
        return step.following if self.trait_now(step.leading) != self.queries.trait(step.leading) else []


def rows_of_the_line(case: MismatchCase, moved: set[TensorId]) -> tuple[TensorId, ...]:
    """Return the tensors that the failing expression reads and that would still be on the odd device."""
    frame = failing_frame(case)
    if not frame.is_there or case.odd_trait != HOST:
        return ()
    read = [(each, case.odd_row(each.value)) for each in values(frame.expression, frame.source, frame.scope())]
    times = Counter(row for _, row in read)
    used_up = {row for row in _inputs_of_the_moved(case, frame, moved) if times[row] == 1}
    found = dict.fromkeys(
        row
        for each, row in read
        if row is not None and case.queries.dims[row] > 0 and not {row, case.queries.base(row)} & moved
        if row not in used_up and not _was_taken(each.node, frame)
        if is_combined(each.node, frame.source, frame.function)
    )
    return tuple(found)


def rows_of_callers(case: MismatchCase, moved: set[TensorId]) -> tuple[TensorId, ...]:
    """Return the odd tensors to which lines that still run would add the result: `total` of `total += layer(x)`."""
    first, rows = failing_frame(case), list[TensorId | None]()
    frames = FailingFrame.all_of(case.moment, case.expected_trait) if first.is_there else []
    for each in (frame for frame in frames if frame.number >= first.number):
        match each.source.parent(each.source_node.node):
            case ast.Return() | ast.Lambda():
                continue
            case ast.BinOp() | ast.AugAssign() as around:
                beside = (operand for operand in operands(around) if operand is not each.source_node.node)
                rows.append(case.odd_row(evaluate(next(beside), each.scope())))
        break
    return tuple(row for row in rows if row is not None and case.queries.dims[row] > 0 and row not in moved)


def _was_taken(node: ast.AST, frame: FailingFrame) -> bool:
    """Return whether an inner call has already taken a tensor: `lengths` of `head(net(x, lengths))`."""
    around = [*frame.source.up_to(node, frame.source_node.node)]
    return around[-1:] != [frame.source.tree] and any(only(ast.Call, around[1:]))


def _inputs_of_the_moved(case: MismatchCase, frame: FailingFrame, moved: set[TensorId]) -> Iterator[TensorId]:
    """Yield the sources of moved tensors in the failing statement: `w` of `x + (1 - w // 2).to(x.device)`."""
    queries, rows = case.queries, list(moved)
    for row in rows:
        op = queries.producer(row)
        if queries.op_node(op).statement is frame.source_node.statement:
            yield from queries.inputs(op)
            rows += [each for each in queries.inputs(op) if each not in rows]


def is_combined(node: ast.AST, source: Source, runs: ast.AST | None = None) -> bool:
    """Return whether code computes with a tensor directly: not `x.to(d)`, `x.shape` or an index.

    Code of a lambda counts only if that `runs`.
    """
    inner = node
    for outer in list(source.ancestors(node))[1:]:
        if isinstance(outer, ast.stmt) or outer is runs:
            return True
        match outer:
            case ast.Call() if leaves_device(name := called_name(outer)):
                computes = name == "backward" or (name in TAKES_VALUES and owner_of(outer) is not None)
                if not computes:  # `sum(x)`, but not `x.sum()`
                    return False
            case ast.Attribute(attr=fact) if fact in FACTS:
                return False
            case ast.Subscript(slice=index) if index is inner:
                return False
            case ast.Lambda() | ast.comprehension():
                return False
        inner = outer
    return True
