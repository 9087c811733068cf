"""Which statements a program passed by, and which are on every way, as tables: source -> answer."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from devtrace.source import defuse
from devtrace.source.defuse import is_on_every_way, was_passed_by
from devtrace.source.safe_values import Scope
from trees import parsed


def bound_and_last(text: str) -> tuple[Any, list[ast.stmt], ast.stmt]:
    source = parsed(text)
    *_, last = defuse.statements(source.tree)
    return source, [each for each in defuse.statements(source.tree) if "x" in defuse.binds(each)], last


@pytest.mark.parametrize(
    ("text", "ran", "values", "passed_by"),
    [
        ("if a:\n    x = 1\nhere()", {}, {"a": False}, True),
        ("if a:\n    x = 1\nhere()", {}, {"a": True}, False),
        ("if a:\n    x = 1\nhere()", {2}, {"a": False}, False),
        ("if not a.b:\n    x = 1\nhere()", {}, {"a": None}, False),
        ("if f():\n    x = 1\nelse:\n    y = 1\nhere()", {4}, {}, True),
        ("if f():\n    x = 1\nelse:\n    y = 1\nhere()", {}, {}, False),
        ("if a is None:\n    pass\nelse:\n    x = 1\nhere()", {}, {"a": None}, True),
        ("if a == 'sum':\n    x = 1\nhere()", {}, {"a": "mean"}, True),
        ("if a != 2:\n    x = 1\nhere()", {}, {"a": 1}, False),
        ("if a == 2:\n    x = 1\nhere()", {}, {"a": object()}, False),
        ("if a is not None:\n    x = 1\n    here()", {}, {"a": None}, False),
        ("try:\n    f()\nexcept ValueError:\n    x = 1\nhere()", {2}, {}, True),
        ("for a in b:\n    x = 1\nhere()", {}, {"b": []}, False),
        ("for c in b:\n    if a:\n        return 0\n    x = 1\nhere()", {}, {"a": True}, True),
        ("for c in b:\n    if a:\n        return 0\n    x = 1\nhere()", {4}, {"a": True}, False),
        (
            "for c in b:\n    if a:\n        y = 0\n    else:\n        raise E\n    x = 1\nhere()",
            {},
            {"a": False},
            True,
        ),
        ("if a:\n    return 0\nx = 1\nhere()", {}, {"a": True}, False),
    ],
)
def test_a_statement_of_a_branch_that_did_not_run_was_passed_by(
    text: str, ran: set[int], values: dict[str, Any], passed_by: bool
) -> None:
    source, (statement,), last = bound_and_last(text)
    assert was_passed_by(statement, source, last, ran, Scope(values, {})) == passed_by


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("if a:\n    x = 1\nhere()", False),
        ("if a:\n    x = 1\nelse:\n    x = 2\nhere()", True),
        ("if a:\n    x = 1\nelif b:\n    x = 2\nhere()", False),
        ("if a:\n    x = 1\n    here()", True),
        ("with a:\n    x = 1\nhere()", True),
        ("try:\n    x = 1\nexcept E:\n    x = 2\nhere()", True),
        ("x = 1\nif a:\n    x = 2\nhere()", True),
    ],
)
def test_a_name_has_a_value_on_every_way_unless_a_branch_alone_gives_it_one(text: str, expected: bool) -> None:
    source, bound, last = bound_and_last(text)
    assert is_on_every_way(bound, source, last) == expected
