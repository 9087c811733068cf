"""Where what a variable holds can be moved, by the source alone: a table of programs that fail at their last line."""

from __future__ import annotations

import ast
import sys
import textwrap
from types import SimpleNamespace
from typing import cast

import pytest

from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.evidence.failing_moment import FailingMoment
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.trace_queries import SourceNode, TraceQueries
from devtrace.diagnosis.findings import Site
from devtrace.diagnosis.fixes.changes import Anchor, of_binding
from devtrace.source.safe_values import Scope
from devtrace.trace.builder import TraceBuilder
from trees import parsed


def failing_at_the_end(text: str) -> FailingFrame:
    """Return the frame of a program that fails in the last statement of its text."""
    source = parsed(textwrap.dedent(text), "train.py")
    statements = [node for node in ast.walk(source.tree) if isinstance(node, ast.stmt)]
    last = max(statements, key=lambda node: (node.lineno, node.col_offset))
    nothing_ran = TraceQueries(TraceBuilder().build())
    frame = sys._getframe()
    of_source = SimpleNamespace(queries=nothing_ran, frames=[frame], scope=lambda _: Scope.of(frame))
    failed = SourceNode(Code(source, Site("train.py", 1)), last, last)
    return FailingFrame(cast(FailingMoment, of_source), 0, "cuda:0", failed)


def shown(anchor: Anchor) -> str:
    """Return an anchor as `below 3`, or `at load()` for an expression."""
    return f"at {anchor.code.text(anchor.node)}" if anchor.kind == "at" else f"{anchor.kind} {anchor.line}"


@pytest.mark.parametrize(
    ("text", "anchors"),
    [
        ("x = load()\nuse(x)", ["at load()", "below 1"]),
        ("x = load(\n    path,\n)\nuse(x)", ["at load(\n    path,\n)", "below 3"]),
        ("x = load()\nx = half(x)\nuse(x)", ["at half(x)", "below 2"]),
        ("x = load()\nuse(x)\nx = 1", ["at 1", "below 3"]),
        ("x, y = one(), two()\nuse(x)", ["at one()", "below 1"]),
        ("y, x = one(), two()\nuse(x)", ["at two()", "below 1"]),
        ("x, y = both()\nuse(x)", ["below 1"]),
        ("x = y = load()\nuse(x)", ["below 1"]),
        ("for x in rows:\n    use(x)", ["top 1"]),
        ("for n, (x, y) in enumerate(rows):\n    use(x)", ["top 1"]),
        ("with opened() as x:\n    use(x)", ["top 1"]),
        ("for x in rows:\n    x = half(x)\n    use(x)", ["at half(x)", "below 2"]),
        ("for x in rows:\n\n    # half of it\n    use(x)", ["top 3"]),
        ("x: Tensor = load()\nuse(x)", []),
        ("[use(x) for x in rows]", []),
        ("x = load()\n[use(x) for x in rows]", ["at load()", "below 1"]),
        ("def f():\n    x = load()\nuse(x)", []),
        ("def f(x):\n    use(x)", []),
        ("def f(x):\n    x = half(x)\n    use(x)", ["at half(x)", "below 2"]),
        ("if ready:\n    x = load()\nuse(x)", ["at load()", "below 2"]),
        ("use(x)", []),
    ],
)
def test_the_last_binding_above_the_failing_line_is_where_it_can_be_moved(text: str, anchors: list[str]) -> None:
    assert [shown(each) for each in of_binding(failing_at_the_end(text), "x")] == anchors


def test_a_line_that_fails_as_it_binds_the_variable_is_not_the_line_that_gave_it_its_value() -> None:
    frame = failing_at_the_end("x = load()\nx = x + y")
    above = of_binding(frame, "x", before=frame.source_node.statement)
    assert [shown(each) for each in above] == ["at load()", "below 1"]


@pytest.mark.parametrize(
    ("kind", "line", "text"),
    [
        ("below", 3, "for x in rows:\n    y = f(\n        x)\n    x.to(d)\n    g(y)\n"),
        ("above", 1, "for x in rows:\n    x.to(d)\n    y = f(\n        x)\n    g(y)\n"),
    ],
)
def test_a_line_is_written_with_the_indent_of_its_statement(kind: str, line: int, text: str) -> None:
    frame = failing_at_the_end("for x in rows:\n    y = f(\n        x)\n    g(y)\n")
    (binding,) = frame.bindings("y")
    anchor = Anchor(frame.code, binding, kind, frame)  # type: ignore[arg-type]
    edit = anchor.edit("x.to(d)")
    assert edit is not None
    lines = frame.source.text.split("\n")
    lines.insert(edit.line, edit.after)
    assert (anchor.line, "\n".join(lines)) == (line, text)
