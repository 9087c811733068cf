"""What a line does with a value that it reads: by its source alone."""

from __future__ import annotations

import ast

import pytest

from devtrace.costs.uses import counter, decides_the_loop
from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.evidence.trace_queries import SourceNode
from devtrace.diagnosis.findings import Site
from trees import parsed

LOOP = """
import math
import numpy as np
import torch
for step in range(9):
    {line}
"""


def found(line: str, read: str) -> SourceNode:
    """Return the code `read` of a line in a loop."""
    source = parsed(LOOP.format(line=line.replace("\n", "\n    ")))
    nodes = [node for node in ast.walk(source.tree) if isinstance(node, ast.expr) and source.segment(node) == read]
    statement = source.statement(nodes[0])
    assert statement is not None
    return SourceNode(Code(source, Site("train.py", 1)), nodes[0], statement)


@pytest.mark.parametrize(
    ("line", "read"),
    [
        ("if info.max() > 3: break", "info.max() > 3"),
        ("if inference_loss < 0.1: break", "inference_loss < 0.1"),
        ('if seen == "nan" or change < self.config.infer: break', "change < self.config.infer"),
        ("while left > 0: left -= 1", "left > 0"),
        ("value = x.max().item()\nif value < 1e-3: break", "x.max().item()"),
    ],
)
def test_a_value_decides_how_long_a_loop_runs(line: str, read: str) -> None:
    assert decides_the_loop(found(line, read))


@pytest.mark.parametrize(
    ("line", "read"),
    [
        ("if torch.isnan(loss): break", "torch.isnan(loss)"),
        ("if not math.isfinite(loss.item()): break", "loss.item()"),
        ("if loss != loss: break", "loss != loss"),
        ('if loss == float("inf"): break', 'loss == float("inf")'),
        ("if loss.item() == -np.inf: break", "loss.item()"),
        ("if loss < 0: print(step)", "loss < 0"),
    ],
)
def test_a_guard_against_what_never_is_decides_no_loop(line: str, read: str) -> None:
    assert not decides_the_loop(found(line, read))


@pytest.mark.parametrize(
    ("line", "read", "name"),
    [
        ("loss = train(step)\nprint(loss.item())", "loss.item()", "step"),
        ("for x, y in loader:\n    loss = train(x, y)\n    print(loss.item())", "loss.item()", ""),
        ("for x in loader: print(net(x).sum().item())", "net(x).sum().item()", ""),
        ("while queue:\n    loss = train(queue.pop())\n    print(loss.item())", "loss.item()", ""),
        ("for at, x in enumerate(loader):\n    loss = train(x)\n    print(loss.item())", "loss.item()", "at"),
        ("for x in loader:\n    loss = train(x)\n    seen += 1\n    print(loss.item())", "loss.item()", "seen"),
        ("for x in loader:\n    loss, total = train(x), total + 1\n    print(loss.item())", "loss.item()", ""),
        ("while True:\n    seen = seen + 1\n    loss = train()\n    print(loss.item())", "loss.item()", "seen"),
        ("for x in loader:\n    if x: seen += 1\n    print(loss.item())", "loss.item()", ""),
        ("for name, value in logs.items(): print(name, value.item())", "value.item()", "step"),
        ("for p in net.parameters():\n    norm = p.norm()\n    print(norm.item())", "norm.item()", ""),
    ],
)
def test_the_rounds_of_a_loop_are_counted_by_a_variable_of_that_loop(line: str, read: str, name: str) -> None:
    """Epochs count no batches: `if epoch % 100 == 0` would print in each step of the first one."""
    node = found(line, read)
    assert counter(node, node.node.func.value) == name  # type: ignore[attr-defined]
