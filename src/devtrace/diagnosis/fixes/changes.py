"""The code that a fix writes at an anchor to move something: where it can be written, and one of four changes.

    x = load(path)           below it: a line after; at `load(path)`: that is written otherwise
    for x, y in loader:      at its top: a line before the first of its block

    OwnLines          model.to(device)    batch["x"] = batch["x"].to(device)
    EachOf            self.state = [each.to(device) for each in self.state]
    Within            torch.cat([a, b]) becomes torch.cat([a, b.to(device)])

    rewritten         x.to(device) becomes x = x.to(device)

Instead of `to(device)` it may be another line's call that is repeated: `cuda()`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Literal

from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.evidence import origins
from devtrace.diagnosis.evidence.access_paths import AccessPath
from devtrace.diagnosis.evidence.execution_order import Passed, maker_at
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.mismatch_case import MismatchCase
from devtrace.diagnosis.findings import Edit, Site
from devtrace.diagnosis.fixes.fix import Fix, Moved, odd_rows, suggested
from devtrace.source import kinds
from devtrace.source.defuse import Block, loops_round, values_given
from devtrace.source.element_types import CASTS
from devtrace.source.matching import only, run_names
from devtrace.source.object_walk import is_tensor, items_of
from devtrace.trace.ids import OpId, TensorId
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import one_line

Kind = Literal["below", "above", "top", "at"]


@dataclass(frozen=True)
class Anchor:
    """A statement, or for kind "at" an expression; `frame` runs the code and has its variables."""

    code: Code
    node: ast.AST
    kind: Kind
    frame: FailingFrame | None = None

    @property
    def statement(self) -> ast.stmt:
        return self.code.source.statement(self.node)

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
        """Return the expected device as code here writes it."""
        return self.frame.device_code(self.line + 1) if self.frame is not None else ""

    def edit(self, *texts: str) -> Edit | None:
        """Write lines here."""
        if self.kind == "top" and isinstance(self.node, Block):
            return self.code.into(self.node, *texts)
        return (self.code.above if self.kind == "above" else self.code.below)(self.statement, *texts)

    def moved(self, case: MismatchCase, *names: AccessPath) -> Iterator[Moved]:
        """Yield the moved tensors, if the named object is moved here."""
        return self.moved_rows(case, [row for name in names for row in odd_rows(case, name.last.value)])

    def moved_rows(self, case: MismatchCase, rows: Iterable[TensorId]) -> Iterator[Moved]:
        """Yield the rows that are moved here, with those that a lazy module makes later."""
        passed = Passed.below(self.frame, self.line) if self.frame is not None and self.frame.is_there else None
        for row in rows:
            birth = case.queries.producer(case.queries.base(row))
            since = passed.since(birth) if passed is not None else birth
            yield Moved(row, max(since, OpId(birth + 1)) if origins.was_materialized(case.queries, row) else since)


def of_binding(frame: FailingFrame, variable: str, *, before: ast.stmt | None = None) -> Iterator[Anchor]:
    """Yield the places to move a variable's value: at its last binding, below it, atop its block."""
    statements = [statement for statement in frame.bindings(variable) if statement is not before]
    for statement in statements[-1:]:
        values = values_given(frame.source, statement)
        if variable in values:
            yield Anchor(frame.code, values[variable], "at", frame)
        match statement:
            case ast.Assign() | ast.Expr():
                yield Anchor(frame.code, statement, "below", frame)
            case ast.With() | ast.For():
                yield Anchor(frame.code, statement, "top", frame)


def statements_above(frame: FailingFrame) -> Iterator[ast.stmt]:
    """Yield the simple statements above a frame's line, the last first."""
    return (line for line in _simple_statements(frame) if frame.source.span(line).end_line < frame.line)


def _simple_statements(frame: FailingFrame) -> Iterator[ast.stmt]:
    return only(_SIMPLE, reversed(list(frame.statements())))


_SIMPLE: Final = (ast.Assign, ast.Expr, ast.AugAssign, ast.Assert)


def lines_that_ran(frame: FailingFrame, site: Site) -> Iterator[ast.stmt]:
    """Yield the statements that ran a site before a frame's line did, themselves or by a call, the last above first.

    Then those below it, if a loop is around both: a round before has run them.
    """
    here, span = frame.code.site, frame.source.span
    makers = {maker_at(replace(site, function=name)) for name in site.function.split(".<locals>.")}
    is_same_file = (here.file, here.cell_id) == (site.file, site.cell_id)
    below = (line for line in _simple_statements(frame) if span(line).line > frame.line)
    of_a_round_before = (line for line in below if loops_round(frame.source, line, frame.line))
    for line in (*statements_above(frame), *of_a_round_before):
        if (is_same_file and span(line).line <= site.line <= span(line).end_line) or makers & run_names(line):
            yield line


_NAMES: Final = ("each", "part")


def moving(target: str) -> str:
    """Return `to(device)`; `half()` for `torch.float16`."""
    methods = {f"torch.{dtype}": method for method, dtype in CASTS.items()}
    return f"{methods[target]}()" if target in methods else f"to({target})"


@dataclass(frozen=True)
class OwnLines:
    """A line for each path; a module is moved in place."""

    paths: tuple[str, ...]
    is_module: bool = False

    @classmethod
    def of(cls, *names: AccessPath) -> OwnLines:
        paths = tuple(name.code for name in names if name.code)
        return cls(paths, bool(names) and kinds.is_module(names[0].last.value))

    def texts(self, anchor: Anchor, call: str) -> list[str]:
        return [f"{path}.{call}" if self.is_module else f"{path} = {path}.{call}" for path in self.paths]


@dataclass(frozen=True)
class EachOf:
    """A line that moves all tensors of a list, tuple or dictionary, at any depth."""

    path: str
    value: Any

    def texts(self, anchor: Anchor, call: str) -> list[str]:
        new = "" if is_tensor(self.value) else self._moving_code(self.path, self.value, call)
        return [f"{self.path} = {new}"] if new else []

    def _moving_code(self, code: str, value: Any, call: str, depth: int = 0) -> str:
        """Return the code that moves a container; empty unless it has only tensors."""
        if is_tensor(value):
            return f"{code}.{call}"
        kind, items = type(value), items_of(value)
        if not items or depth == len(_NAMES):
            return ""
        name = _NAMES[depth]
        texts = {self._moving_code(name, item, call, depth + 1) for item in items}
        text = texts.pop()
        if texts or not text:  # its items are no tensors, or not alike
            return ""
        if kind is dict:
            return f"{{key: {text} for key, {name} in {code}.items()}}"
        return f"[{text} for {name} in {code}]" if kind is list else f"tuple({text} for {name} in {code})"


@dataclass(frozen=True)
class Within:
    """Expressions of a statement, each moved where it stands; `devices` are those of the nodes if they differ."""

    nodes: tuple[ast.expr, ...]
    devices: tuple[str, ...] = ()

    def texts(self, anchor: Anchor, call: str) -> list[str]:
        calls = [moving(device) for device in self.devices] or [call] * len(self.nodes)
        return [anchor.code.called_on(node, move) for node, move in zip(self.nodes, calls, strict=True)]


@dataclass(frozen=True)
class Proposal:
    """A change at an anchor, to a device as code writes it, else as the anchor does; or by the `call` of another line.

    `target`: what the code is assigned to, as `x = `, for the words of the fix.
    """

    anchor: Anchor
    change: OwnLines | EachOf | Within
    device: str | None = None
    call: str = ""
    target: str = ""

    @cached_property
    def texts(self) -> list[str]:
        device = self.anchor.device if self.device is None and not self.call else self.device
        call = self.call or (moving(device) if device else "")
        return self.change.texts(self.anchor, call) if call else []

    @property
    def code(self) -> str:
        """Return the code for a fix's help text: all its lines, or the first of its pieces."""
        return one_line(self.target + "; ".join(self.texts[: None if type(self.change) is OwnLines else 1]))

    def edit(self) -> Edit | None:
        texts = self.texts
        if isinstance(self.change, Within):
            return self.anchor.code.all_replaced(list(zip(self.change.nodes, texts, strict=True))) if texts else None
        return self.anchor.edit(*texts) if texts else None

    def fixes(self, key: str, moved: Iterable[Moved], **words: object) -> Iterator[Fix]:
        """Yield the fix in the words of a key, with what it moves, if it can be written."""
        if edit := self.edit():
            all_words = {"code": self.code, "line": self.anchor.line, **words}
            yield Fix(sentence(key, **all_words), (edit,), tuple(moved))


def rewritten(
    code: Code, changes: Mapping[Any, str], key: str, moved: Iterable[Moved] = (), *, shown: str = ""
) -> Iterator[Fix]:
    """Yield the fix that writes pieces of code otherwise; its words show the first of them, or what is `shown`."""
    edit = code.all_replaced([*changes.items()]) if all(changes.values()) else None
    yield from suggested(sentence(key, code=one_line(shown or next(iter(changes.values())))), edit, moved=moved)
