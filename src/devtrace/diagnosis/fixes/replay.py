"""The recorded ops once more, with tensors where a fix puts them: which op would then mix devices?

What is computed from a moved tensor moves with it, up to a copy that names its device. So a fix that only moves the
error to an earlier line, or mends one of two inputs, is found without running the program.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from devtrace.diagnosis.evidence.case import Case
from devtrace.diagnosis.evidence.cpu_only import LENGTHS_ON_HOST
from devtrace.diagnosis.evidence.mismatch import INDEXING, combined
from devtrace.diagnosis.evidence.trace_queries import HOST
from devtrace.diagnosis.fixes.fix import Moved


@dataclass(frozen=True)
class Conflict:
    """An op that would mix devices, and its inputs that would be on the odd one."""

    op: int
    rows: tuple[int, ...]


class Replay:
    """Runs the ops up to the failing one; `conflict` is the first that would mix devices, None if all would run."""

    def __init__(self, case: Case, moved: Iterable[Moved]) -> None:
        self.case = case
        self.queries = case.queries
        self.there: set[int] = set()  # rows that are on the expected device now, and were not
        self.conflict = self._run(sorted(moved, key=lambda each: -each.since))

    def _run(self, waiting: list[Moved]) -> Conflict | None:
        first = max(0, waiting[-1].since) if waiting else self.case.op
        for op in range(first, self.case.op):
            self._arrive(waiting, op)
            inputs = self.queries.inputs(op)
            if self.there.isdisjoint(inputs):
                continue
            odd = self._mixed(op, inputs)
            if odd:
                return Conflict(op, odd)
            self.there.update(self._follow(op, inputs))
        self._arrive(waiting, self.case.op)
        self._make_for_the_failing_op()
        left = tuple(row for row in self._failing_inputs() if self._device(row) != self.case.expected_device)
        return Conflict(self.case.op, left) if left else None

    def _arrive(self, waiting: list[Moved], op: int) -> None:
        while waiting and waiting[-1].since <= op:
            self.there.add(waiting.pop().row)

    def _make_for_the_failing_op(self) -> None:
        """Let what torch's own code made on the way to the failing op be where that gets its tensors.

        No other code runs ops of one site apart: `nn.GRU` makes the first hidden state at the user's call of it.
        """
        site_of, first = self.queries.trace.ops.ints("site"), self.case.op
        while first > 0 and site_of[first - 1] == site_of[self.case.op]:
            first -= 1
        for op in range(first, self.case.op) if self.there else ():
            inputs = self.queries.inputs(op)
            self.there.update(self._follow(op, inputs) if inputs else self.queries.outputs(op))

    def _failing_inputs(self) -> list[int]:
        return [row for row in combined(self.queries, self.case.op) if self.queries.dims[row] != 0]

    def _device(self, row: int) -> str:
        return self.case.expected_device if row in self.there else self.queries.device(row)

    def _mixed(self, op: int, inputs: list[int]) -> tuple[int, ...]:
        """Return the inputs on the odd device of an op that would mix devices because of what moved.

        And those that moved from the only device where the op takes them.
        """
        if self.queries.op_name(op) == LENGTHS_ON_HOST and self.case.expected_device != HOST:
            return tuple(row for row in inputs[1:] if row in self.there)
        if self.queries.kind(op) == "copy" or "copy_" in self.queries.op_name(op):
            return ()
        rows = [row for row in inputs if self.queries.dims[row] != 0]
        if self.queries.op_name(op).startswith(INDEXING) and rows and self._device(rows[0]) != HOST:
            rows = [rows[0], *(row for row in rows[1:] if self._device(row) != HOST)]
        if len({self._device(row) for row in rows}) < 2 or len({self.queries.device(row) for row in rows}) > 1:
            return ()
        return tuple(row for row in rows if self._device(row) != self.case.expected_device)

    def _follow(self, op: int, inputs: list[int]) -> list[int]:
        """Return the outputs that come out on the expected device, because the inputs are there."""
        leading = next((row for row in inputs if self.queries.dims[row] != 0), inputs[0])
        if self._device(leading) == self.queries.device(leading):
            return []
        return [row for row in self.queries.outputs(op) if self.queries.device(row) == self.queries.device(leading)]
