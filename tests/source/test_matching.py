"""A pattern of syntax is the code that it matches, with holes."""

from __future__ import annotations

import ast

import pytest

from devtrace.source.matching import assigned_names, called_name, called_names, is_path, keyword, match_code, names_in


def parsed(text: str) -> ast.AST:
    statement = ast.parse(text).body[0]
    return statement.value if isinstance(statement, ast.Expr) else statement


def filled(pattern: str, text: str) -> dict[str, str] | None:
    found = match_code(pattern, parsed(text))
    return found and {hole: code if isinstance(code, str) else ast.unparse(code) for hole, code in found.items()}


@pytest.mark.parametrize(
    ("pattern", "text", "holes"),
    [
        ("$x.to($device)", "self.a[0].to(d)", {"x": "self.a[0]", "device": "d"}),
        ("$x.to($device)", "a.to(d, non_blocking=True)", None),
        ("$x.to(...)", "a.to(d, non_blocking=True)", {"x": "a"}),
        ("$x.$move(...)", "a.cuda()", {"x": "a", "move": "cuda"}),
        ("$x.$move(...)", "cuda(a)", None),
        ("$x = $value", "a = b = 1", None),
        ("$x = $value", "a.b = f(1)", {"x": "a.b", "value": "f(1)"}),
        ("$x = $x.$move(...)", "self.a = self.a.to(d)", {"x": "self.a", "move": "to"}),
        ("$x = $x.$move(...)", "self.a = self.b.to(d)", None),
        ("$self.table = $value", "self.table = 1", {"self": "self", "value": "1"}),
        ("$self.table = $value", "self.other = 1", None),
        ("next($module.parameters())", "next(self.net.parameters())", {"module": "self.net"}),
        ("$x % $n == 0", "step % 10 == 0", {"x": "step", "n": "10"}),
        ("$x % $n == 0", "step % 10 == 1", None),
    ],
)
def test_a_pattern_matches_code_of_its_shape(pattern: str, text: str, holes: dict[str, str] | None) -> None:
    assert filled(pattern, text) == holes


def test_the_name_of_a_call_is_its_last() -> None:
    assert [called_name(parsed(text)) for text in ("a.b.c(1)", "c(1)", "f()(1)", "c")] == ["c", "c", "", ""]
    assert called_names(parsed("f(g.h(1))(2)")) == {"f", "h"}


def test_keywords_names_and_assigned_names_are_found() -> None:
    call = parsed("f(a, device=b.device)")
    assert isinstance(call, ast.Call)
    device = keyword(call, "device")
    assert device is not None
    assert (ast.unparse(device), keyword(call, "dtype")) == ("b.device", None)
    assert names_in(call, parsed("c")) == {"f", "a", "b", "c"}
    assert sorted(assigned_names(parsed("a, b[0], *c = d = e"))) == ["a", "c", "d"]


def test_a_path_is_names_attributes_and_constant_items() -> None:
    assert [is_path(parsed(text)) for text in ("a.b[0].c", "a[i]", "f().a")] == [True, False, False]
