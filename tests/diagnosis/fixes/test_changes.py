"""What is written at an anchor: a table of changes and of the code that they give."""

from __future__ import annotations

import ast

import pytest
import torch

from devtrace.diagnosis.edits import Code, applied
from devtrace.diagnosis.findings import Site
from devtrace.diagnosis.fixes.changes import Anchor, EachOf, OwnLines, Proposal, Within
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
