"""Tables of code for edits: what is written at an anchor, where an anchor is, and which operands fail next."""

from __future__ import annotations

import ast
import sys
import textwrap
from types import SimpleNamespace
from typing import cast

import pytest
import torch

from devtrace.diagnosis.edits import Code, applied
from devtrace.diagnosis.evidence.failing_moment import FailingMoment
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.trace_queries import SourceNode, TraceQueries
from devtrace.diagnosis.findings import Site
from devtrace.diagnosis.fixes.changes import Anchor, EachOf, OwnLines, Proposal, Within, of_binding
from devtrace.diagnosis.fixes.replay import is_combined
from devtrace.source.safe_values import Scope
from devtrace.trace.builder import TraceBuilder
from trees import parsed

X = torch.ones(1)


def code(text: str) -> Code:
    source = parsed(text, "train.py")
    return Code(source, Site("train.py", 1))


def named(here: Code, *names: str) -> tuple[ast.expr, ...]:
    """Return the expressions of a text by their code."""
    nodes = [node for node in ast.walk(here.source.tree) if isinstance(node, ast.expr)]
    return tuple(next(node for node in nodes if here.text(node) == name) for name in names)


@pytest.mark.parametrize(
    ("change", "lines"),
    [
        (OwnLines(("x",)), ["x = x.to(d)"]),
        (OwnLines(("model",), is_module=True), ["model.to(d)"]),
        (OwnLines(('b["x"]', "self.y")), ['b["x"] = b["x"].to(d)', "self.y = self.y.to(d)"]),
        (OwnLines(()), []),
        (EachOf("s", [X, X]), ["s = [each.to(d) for each in s]"]),
        (EachOf("s", (X, X)), ["s = tuple(each.to(d) for each in s)"]),
        (EachOf("s", {"a": X}), ["s = {key: each.to(d) for key, each in s.items()}"]),
        (EachOf("s", [(X, X), (X, X)]), ["s = [tuple(part.to(d) for part in each) for each in s]"]),
        (EachOf("s", {"a": [X]}), ["s = {key: [part.to(d) for part in each] for key, each in s.items()}"]),
        (EachOf("s", [[[X]]]), []),
        (EachOf("s", [X, 1]), []),
        (EachOf("s", [X, [X]]), []),
        (EachOf("s", []), []),
        (EachOf("s", X), []),
        (EachOf("s", 3), []),
    ],
)
def test_lines_of_their_own_go_below_the_statement(change: OwnLines | EachOf, lines: list[str]) -> None:
    here = code("x = load()\nuse(x)\n")
    proposal = Proposal(Anchor(here, here.source.tree.body[0], "below"), change, "d")
    edit = proposal.edit()
    assert proposal.texts == lines
    assert (edit.after.split("\n") if edit is not None else []) == lines


@pytest.mark.parametrize(
    ("text", "nodes", "after"),
    [
        ("f(a, b)\n", ["b"], "f(a, b.to(d))\n"),
        ("f(a, b)\n", ["a", "b"], "f(a.to(d), b.to(d))\n"),
        ("y = a + b\n", ["a + b"], "y = (a + b).to(d)\n"),
        ("y = -a\n", ["-a"], "y = (-a).to(d)\n"),
        ("y = f(\n    a,\n    b,\n)\n", ["a", "b"], "y = f(\n    a.to(d),\n    b.to(d),\n)\n"),
        ("y = f(\n    a,\n)\n", ["f(\n    a,\n)"], "y = f(\n    a,\n).to(d)\n"),
        ("y = x[0]\n", ["x[0]"], "y = x[0].to(d)\n"),
        ("y = [a]\n", ["[a]"], "y = [a].to(d)\n"),
        ("y = a if b else c\n", ["c"], "y = a if b else c.to(d)\n"),
    ],
)
def test_expressions_are_moved_within_their_statement(text: str, nodes: list[str], after: str) -> None:
    here = code(text)
    found = named(here, *nodes)
    edit = Proposal(Anchor(here, found[0], "at"), Within(found), "d").edit()
    assert edit is not None
    assert applied(text, [edit]) == after


def test_each_expression_may_have_its_own_device() -> None:
    here = code("mu, nu = f(a), f(b)\n")
    found = named(here, "f(a)", "f(b)")
    proposal = Proposal(Anchor(here, found[0], "at"), Within(found, ("a.device", "b.device")), "a.device")
    assert proposal.texts == ["f(a).to(a.device)", "f(b).to(b.device)"]


def test_the_call_of_another_line_is_repeated_instead() -> None:
    here = code("x = x.cuda(non_blocking=True)\n")
    proposal = Proposal(
        Anchor(here, here.source.tree.body[0], "below"), OwnLines(("y",)), "", "cuda(non_blocking=True)"
    )
    assert proposal.code == "y = y.cuda(non_blocking=True)"


def test_without_a_device_nothing_is_written() -> None:
    here = code("x = load()\n")
    assert Proposal(Anchor(here, here.source.tree.body[0], "below"), OwnLines(("x",)), "").edit() is None


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


@pytest.mark.parametrize(
    ("code", "combined"),
    [
        ("x + y", True),
        ("f(x, y)", True),
        ("x.T @ y", True),
        ("x.float() * y", True),
        ("x.sum() + y", True),
        ("loss(x, y).backward()", True),
        ("z = [x, y]", True),
        ("x[0] + y", True),
        ("-x * y", True),
        ("x.to(d) + y", False),
        ("x.cuda() + y", False),
        ("x.xpu() + y", False),
        ("f(x).to(d) + y", False),
        ("x.type_as(y) + y", False),
        ("y + x.shape[0]", False),
        ("y + len(x)", False),
        ("y + sum(x)", False),
        ("y + float(x)", False),
        ("y + x.item()", False),
        ("y.to(x.device)", False),
        ("print(x, y)", False),
        ("y[x]", False),
        ("y if x.is_cuda else z", False),
        ("lambda: x + y", False),
        ("[y + each for each in x]", False),
    ],
)
def test_a_tensor_is_combined_as_it_is_unless_code_moves_it_first_or_takes_no_tensor_of_it(
    code: str, combined: bool
) -> None:
    source = parsed(code)
    names = (node for node in ast.walk(source.tree) if isinstance(node, ast.Name) and node.id == "x")
    assert is_combined(next(names), source) is combined
