"""Which operands a line will stumble over next: a table of expressions that read x."""

from __future__ import annotations

import ast

import pytest

from devtrace.diagnosis.fixes.replay import is_combined
from trees import parsed


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
