"""Which expressions of a line are no tensor, but a list of some: by what takes them, and by what made them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest
from torch import nn

from devtrace.source import parsing
from devtrace.source.matching import nodes_of
from devtrace.source.multi_value_expr import means_several
from devtrace.source.safe_values import Scope


def pair(x: int) -> tuple[int, int]:
    return x, x + 1


def table(x: int) -> dict[int, int]:
    if x:
        return {each: x + each for each in range(x)}
    return {}


def in_turn(x: int) -> Iterator[int]:
    yield x


def number(x: int) -> int:
    def inner() -> list[int]:
        return [x]

    return max(inner())


class Split(nn.Module):
    def forward(self, x: int) -> list[int]:
        return [x, x]


class Pass(nn.Module):
    def forward(self, x: int) -> int:
        return x


split, passing = Split(), Pass()


@pytest.mark.parametrize(
    ("line", "part", "is_several"),
    [
        ("pair(x)", "pair(x)", True),
        ("table(x)", "table(x)", True),
        ("in_turn(x)", "in_turn(x)", True),
        ("number(x)", "number(x)", False),
        ("split(x)", "split(x)", True),
        ("passing(x)", "passing(x)", False),
        ("unknown(x)", "unknown(x)", False),
        ("f(*unknown(x))", "unknown(x)", True),
        ("torch.stack(unknown(x))", "unknown(x)", True),
        ("torch.stack([unknown(x)])", "unknown(x)", False),
        ("torch.cat(a, unknown(x))", "unknown(x)", False),
        ("pad_sequence(unknown(x), True)", "unknown(x)", True),
        ("sum(unknown(x))", "unknown(x)", True),
        ("sum(a, unknown(x))", "unknown(x)", False),
        ("torch.sum(unknown(x))", "unknown(x)", False),
        ("reduce(torch.add, unknown(x))", "unknown(x)", True),
        ("reduce(unknown(x), a)", "unknown(x)", False),
    ],
)
def test_what_is_taken_apart_or_returned_as_a_list_is_several(line: str, part: str, is_several: bool) -> None:
    source = parsing.Source("<line>", line, ast.parse(line), 1, 0)
    node = next(each for each in nodes_of(ast.Call, source.tree) if ast.unparse(each) == part)
    assert means_several(node, source, Scope({}, globals())) is is_several
