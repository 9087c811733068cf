"""Where code can be written: below, above or at the top of a statement, or at an expression of one.

x = load(path)           below it: a line after; at `load(path)`: that is written otherwise
for x, y in loader:      at its top: a line before the first of its block
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.evidence import origins
from devtrace.diagnosis.evidence.access_paths import AccessPath
from devtrace.diagnosis.evidence.case import Case
from devtrace.diagnosis.evidence.execution_order import Passed
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.trace_queries import SourceNode
from devtrace.diagnosis.findings import Edit
from devtrace.diagnosis.fixes.fix import Moved, odd_rows
from devtrace.source.flow import values_given
from devtrace.trace.ids import OpId, TensorId

Kind = Literal["below", "above", "top", "at"]
Block = ast.For | ast.AsyncFor | ast.With | ast.AsyncWith


@dataclass(frozen=True)
class Anchor:
    """A statement, or for kind "at" an expression; `frame` runs the code and has its variables."""

    code: Code
    node: ast.AST
    kind: Kind
    frame: FailingFrame | None = None

    @classmethod
    def below_move(cls, move: SourceNode, frame: FailingFrame | None) -> Anchor:
        return cls(move.code, move.statement, "below", frame)

    @property
    def statement(self) -> ast.stmt:
        statement = self.code.source.statement(self.node)
        assert statement is not None
        return statement

    @property
    def line(self) -> int:
        """Return the last line that has run when what is written here does."""
        span = self.code.source.span
        if self.kind == "above":
            return span(self.node).line - 1
        if self.kind == "top" and isinstance(self.node, Block):
            return span(self.node.body[0]).line - 1
        return span(self.statement).end_line

    @property
    def device(self) -> str:
        """Return the expected device as a line here writes it."""
        return self.frame.setup_device_code(self.line + 1) if self.frame is not None else ""

    def edit(self, *texts: str) -> Edit | None:
        """Write lines here."""
        if self.kind == "top" and isinstance(self.node, Block):
            return self.code.into(self.node, *texts)
        return (self.code.above if self.kind == "above" else self.code.below)(self.statement, *texts)

    def moved(self, case: Case, *names: AccessPath) -> Iterator[Moved]:
        """Yield the moved tensors, if the named object is moved here."""
        return self.moved_rows(case, [row for name in names for row in odd_rows(case, name.last.value)])

    def moved_rows(self, case: Case, rows: Iterable[TensorId]) -> Iterator[Moved]:
        """Yield the rows that are moved here, with those that a lazy module makes later."""
        passed = Passed.below(self.frame, self.line) if self.frame is not None else None
        for row in rows:
            birth = case.queries.producer(case.queries.base(row))
            since = passed.since(birth) if passed is not None else birth
            yield Moved(row, max(since, OpId(birth + 1)) if origins.was_materialized(case.queries, row) else since)


def of_binding(frame: FailingFrame | None, variable: str, *, before: ast.stmt | None = None) -> Iterator[Anchor]:
    """Yield the places to move a variable's value: at its last binding, below it, atop its block."""
    bound = [one for one in frame.bindings(variable) if one is not before] if frame is not None else []
    for statement in bound[-1:]:
        assert frame is not None
        values = values_given(frame.source, statement)
        if variable in values:
            yield Anchor(frame.code, values[variable], "at", frame)
        if isinstance(statement, ast.Assign | ast.Expr):
            yield Anchor(frame.code, statement, "below", frame)
        elif isinstance(statement, ast.With | ast.For):
            yield Anchor(frame.code, statement, "top", frame)
