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

_KIND_OF_OP: Final = {LENGTHS_ON_HOST: "lengths", PINNING: "pinned"}


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
            self._steps[op] = self._read_step(op)
        return self._steps[op]

    @cached_property
    def followers(self) -> dict[TensorId, list[OpId]]:
        """Ops of factories by the tensor whose device they ask for: `torch.zeros(n, device=x.device)` follows `x`."""
        queries, ops = self.queries, dict[TensorId, list[OpId]]()
        created = np.flatnonzero(queries.is_kind("create")[: queries.failed])
        sites = queries.trace.ops.ints("site")[created]
        asking = [site for site in sorted({*sites.tolist()}) if origins.leader(queries, SiteId(site))]
        for op in map(OpId, created[np.isin(sites, asking)].tolist()):
            row = origins.followed(queries, op)
            if row >= 0:
                ops.setdefault(row, []).append(op)
        return ops

    @cached_property
    def _leaders(self) -> dict[OpId, TensorId]:
        return {op: row for row, ops in self.followers.items() for op in ops}

    def _read_step(self, op: OpId) -> Step:
        queries, name = self.queries, self.queries.op_name(op)
        inputs = [self._leaders[op]] if op in self._leaders else queries.inputs(op)
        rows = [row for row in inputs if queries.dims[row] != 0]
        trait = queries.trait((rows or inputs)[0]) if inputs else ""
        outputs = queries.outputs(op)
        following = [row for row in outputs if not inputs or queries.trait(row) == trait]
        is_copy = queries.kind(op) == "copy" or "copy_" in name
        kind = _KIND_OF_OP.get(name) or ("copy" if is_copy else "")
        return Step(op, name, inputs, outputs, rows, following, kind)


class Replay:
    """Runs the ops up to the failing one; `conflict` is the first that would mix devices, None if all would run."""

    def __init__(self, recorded: RecordedSteps, case: MismatchCase, moved: Iterable[Moved]) -> None:
        self.recorded = recorded
        self.case = case
        self.queries = case.queries
        self.there: set[TensorId] = set()  # rows that are on the expected device now, and were not
        self._ops_to_visit: list[OpId] = []  # a heap of the ops that take one of them
        self.conflict = self._first_conflict(sorted(moved, key=lambda move: -move.since))

    def _first_conflict(self, moves: list[Moved]) -> Conflict | None:
        last_op = -1
        while moves or self._ops_to_visit:
            op = min([*self._ops_to_visit[:1], *(move.since for move in moves[-1:])])
            if op >= self.case.op:
                break
            while moves and moves[-1].since <= op:
                self._put_there(moves.pop().row, op)
            if not self._ops_to_visit or self._ops_to_visit[0] != op:
                continue
            op = heapq.heappop(self._ops_to_visit)
            if op == last_op:  # it takes several of them
                continue
            last_op, step = op, self.recorded.step(op)
            odd = self.conflicting_inputs(step)
            if odd:
                return Conflict(op, odd)
            for row in self.moved_outputs(step):
                self._put_there(row, OpId(op + 1))
        self.there.update(move.row for move in moves if move.since <= self.case.op)
        self.move_what_torch_makes()
        odd = tuple(row for row in self.failing_inputs() if self.trait_now(row) != self.case.expected_trait)
        return Conflict(self.case.op, odd) if odd else None

    def _put_there(self, row: TensorId, since: OpId) -> None:
        if row not in self.there:
            self.there.add(row)
            for taker in (*self.queries.takers(row), *self.recorded.followers.get(row, ())):
                if since <= taker < self.case.op:
                    heapq.heappush(self._ops_to_visit, taker)

    def move_what_torch_makes(self) -> None:
        """Let tensors that torch's own code makes for the failing op follow that op's other inputs.

        `nn.GRU` makes its first hidden state at the user's call of it.
        """
        for step in self.steps_before_the_failing_op():
            self.there.update(self.moved_outputs(step) if step.inputs else step.following)

    def steps_before_the_failing_op(self) -> Iterator[Step]:
        """Yield the steps just before the failing op that its line ran too, if anything has moved."""
        site_of, first = self.queries.trace.ops.ints("site"), self.case.op
        while self.there and first > 0 and site_of[first - 1] == site_of[self.case.op]:
            first = OpId(first - 1)
        yield from map(self.recorded.step, map(OpId, range(first, self.case.op)))

    def failing_inputs(self) -> list[TensorId]:
        return [row for row in combined(self.queries, self.case.op, self.trait_now) if self.queries.dims[row] != 0]

    def trait_now(self, row: TensorId) -> str:
        return self.case.expected_trait if row in self.there else self.queries.trait(row)

    def conflicting_inputs(self, step: Step) -> tuple[TensorId, ...]:
        """Return the odd inputs of an op that would mix devices after the move.

        For an op that takes some inputs on the CPU alone, as the lengths of a packed sequence, those that have moved.
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

    def moved_outputs(self, step: Step) -> list[TensorId]:
        """Return the outputs that follow their inputs to the expected device."""
        return step.following if self.trait_now(step.leading) != self.queries.trait(step.leading) else []


def rows_of_the_line(case: MismatchCase, moved: set[TensorId]) -> tuple[TensorId, ...]:
    """Return the tensors that the failing expression reads and that would still be on the odd device."""
    frame = failing_frame(case)
    if not frame.is_there or case.odd_trait != HOST:
        return ()
    uses = [(path, case.odd_row(path.value)) for path in values(frame.expression, frame.source, frame.scope())]
    counts = Counter(row for _, row in uses)
    used_up = {row for row in _sources_in_the_line(case, frame, moved) if counts[row] == 1}
    rows = dict.fromkeys(
        row
        for path, row in uses
        if row is not None and case.queries.dims[row] > 0 and not {row, case.queries.base(row)} & moved
        if row not in used_up and not _inner_call_took_it(path.node, frame)
        if is_combined(path.node, frame.source, frame.function)
    )
    return tuple(rows)


def rows_of_callers(case: MismatchCase, moved: set[TensorId]) -> tuple[TensorId, ...]:
    """Return the odd tensors to which lines that still run would add the result: `total` of `total += layer(x)`."""
    failing, rows = failing_frame(case), list[TensorId | None]()
    frames = FailingFrame.all_of(case.moment, case.expected_trait) if failing.is_there else []
    for frame in (caller for caller in frames if caller.number >= failing.number):
        match frame.source.parent(frame.source_node.node):
            case ast.Return() | ast.Lambda():
                continue  # the caller gets the result
            case ast.BinOp() | ast.AugAssign() as operation:
                others = (operand for operand in operands(operation) if operand is not frame.source_node.node)
                rows.append(case.odd_row(evaluate(next(others), frame.scope())))
        break
    return tuple(row for row in rows if row is not None and case.queries.dims[row] > 0 and row not in moved)


def _inner_call_took_it(node: ast.AST, frame: FailingFrame) -> bool:
    """Return whether an inner call of the line has run with a tensor: `lengths` of `head(net(x, lengths))`."""
    around = [*frame.source.up_to(node, frame.source_node.node)]
    return around[-1:] != [frame.source.tree] and any(only(ast.Call, around[1:]))


def _sources_in_the_line(case: MismatchCase, frame: FailingFrame, moved: set[TensorId]) -> Iterator[TensorId]:
    """Yield the sources of moved tensors in the failing statement: `w` of `x + (1 - w // 2).to(x.device)`."""
    queries, rows = case.queries, list(moved)
    for row in rows:
        op = queries.producer(row)
        if queries.op_node(op).statement is frame.source_node.statement:
            yield from queries.inputs(op)
            rows += [source for source in queries.inputs(op) if source not in rows]


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
