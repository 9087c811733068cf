"""What a line does with a value that it reads: by its source alone."""

from __future__ import annotations

import ast

import pytest

from devtrace.diagnosis.costs.decisions import decides_the_loop
from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.evidence.trace_queries import SourceNode
from devtrace.diagnosis.findings import Site
from devtrace.source.parsing import parse

LOOP = """
import math
import numpy as np
import torch
for step in range(9):
    {line}
"""


def found(line: str, read: str) -> SourceNode:
    """Return the code `read` of a line in a loop."""
    source = parse(LOOP.format(line=line.replace("\n", "\n    ")))
    assert source is not None
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
