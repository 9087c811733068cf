"""What gives names their values, what was passed by and what is on every way, as tables: source -> answer."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from devtrace.source import defuse
from devtrace.source.matching import operands
from devtrace.source.parsing import own_name
from devtrace.source.safe_values import Scope
from trees import parsed


def given(text: str, path: str) -> list[tuple[str, tuple[int, ...]]]:
    source = parsed(text)
    found = defuse.bindings(source, source.tree, path)
    return [(source.segment(each.value), each.position) for each in found]


@pytest.mark.parametrize(
    ("text", "path", "values"),
    [
        ("x = f()", "x", [("f()", ())]),
        ("x = y = f()", "y", [("f()", ())]),
        ("a, (b, c) = f()", "c", [("f()", (1, 1))]),
        ("[a, b] = f()", "b", [("f()", (1,))]),
        ("a, *b, c = f()", "c", [("f()", (-1,))]),
        ("x: int = 3", "x", [("3", ())]),
        ("x: int", "x", []),
        ("x += 1", "x", []),
        ("self.w = f()", "self.w", [("f()", ())]),
        ("self.w = f()", "w", []),
        ("this.net.w, n = f()", "this.net.w", [("f()", (0,))]),
        ("d['k'] = f()", "d", []),
        ("f().w = 3", "f.w", []),
        ("for i, x in g(): pass", "x", [("g()", (1,))]),
        ("async def f():\n    async for x in g(): pass", "x", []),
        ("with f() as (a, b): pass", "b", [("f()", (1,))]),
        ("with f(): pass", "f", []),
        ("if (n := f()): pass", "n", [("f()", ())]),
        ("if a:\n    x = 1\nelse:\n    x = 2", "x", [("1", ()), ("2", ())]),
        (
            "try:\n    x = 1\nexcept E:\n    x = 2\nelse:\n    x = 3\nfinally:\n    x = 4",
            "x",
            [(n, ()) for n in "1234"],
        ),
        ("match a:\n    case 1:\n        x = 1\n    case _:\n        x = 2", "x", [("1", ()), ("2", ())]),
        ("while a:\n    x = 1", "x", [("1", ())]),
        ("def g():\n    x = 1", "x", []),
        ("class A:\n    x = 1", "x", []),
        ("x = lambda: (x := 3)", "x", [("lambda: (x := 3)", ()), ("3", ())]),
    ],
)
def test_a_path_is_given_these_values(text: str, path: str, values: list[tuple[str, tuple[int, ...]]]) -> None:
    assert given(text, path) == values


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("x = f(self.net.w, y[0])", {"x", "f", "self", "self.net", "self.net.w", "y"}),
        ("g().w", {"g"}),
        ("3", set[str]()),
    ],
)
def test_code_names_these_paths(text: str, paths: set[str]) -> None:
    assert defuse.paths_in(parsed(text).tree) == paths


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("x = f()", "x=f()"),
        ("a, b = 1, f()", "a=1 b=f()"),
        ("[a, (b, c)] = f(), (g(), h())", "a=f() b=g() c=h()"),
        ("a, (b, c) = f(), g()", "a=f()"),
        ("a, *rest, z = 1, 2, 3, f()", "a=1 z=f()"),
        ("a, b = *f(), g()", ""),
        ("x, self.w = 1, f()", "x=1"),
        ("x = y = f()", ""),
        ("x = g(y := f())", "x=g((y := f()))"),
        ("for x in f(): pass", ""),
        ("x += 1", ""),
    ],
)
def test_an_assignment_gives_its_variables_these_values(text: str, answer: str) -> None:
    source = parsed(text)
    found = defuse.values_given(source, source.tree.body[0])
    assert " ".join(f"{name}={ast.unparse(value)}" for name, value in found.items()) == answer


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("x = y", "x"),
        ("x += 1", "x"),
        ("x: int = 3", "x"),
        ("a, *b = f()", "a b"),
        ("self.w = x", ""),
        ("import a.b, c as d", "a d"),
        ("from a import b, c as d", "b d"),
        ("def f(x): y = 1", "f"),
        ("class A: x = 1", "A"),
        ("for i, x in y: z = 1", "i x"),
        ("with f() as a, g() as b: z = 1", "a b"),
        ("try:\n    x = 1\nexcept E as e:\n    y = 2", "e"),
        ("try:\n    x = 1\nexcept E:\n    y = 2", ""),
        ("if (n := f()): x = 1", "n"),
        ("match a:\n    case {'k': x, **rest}:\n        y = 1", "rest x"),
        ("match a:\n    case [first, *others] | P(first, x=others):\n        y = 1", "first others"),
        ("match a:\n    case int() as n:\n        y = 1\n    case _:\n        z = 1", "n"),
        ("del x", ""),
        ("return_ = 3", "return_"),
    ],
)
def test_a_statement_binds_these_names(text: str, names: str) -> None:
    assert sorted(defuse.binds(parsed(text).tree.body[0])) == names.split()


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("class A:\n    def f(self): HERE", "self"),
        ("class A:\n    def f(this, x): HERE", "this"),
        ("class A:\n    def f(me, /, x): HERE", "me"),
        ("class A:\n    async def f(self): HERE", "self"),
        ("class A:\n    @classmethod\n    def f(cls): HERE", "cls"),
        ("class A:\n    @staticmethod\n    def f(x): HERE", ""),
        ("class A:\n    def f(self):\n        def g(x): HERE", "self"),
        ("class A:\n    def f(self): return lambda x: HERE", "self"),
        ("class A:\n    def f(): HERE", ""),
        ("class A:\n    HERE", ""),
        ("def f(self): HERE", ""),
        ("    def f(this): HERE", "this"),
        ("HERE", ""),
    ],
)
def test_a_method_knows_its_object_by_its_first_parameter(text: str, name: str) -> None:
    source = parsed(text)
    here = next(node for node in ast.walk(source.tree) if isinstance(node, ast.Name) and node.id == "HERE")
    assert own_name(source, here) == name


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("f(a, *b, c=d)", "a b d"),
        ("x.f(a)", "x a"),
        ("a @ b", "a b"),
        ("a < b < c", "a b c"),
        ("-a", "a"),
        ("a.T", "a"),
        ("a[b, 1:c, d]", "a b d"),
        ("a += b", "a b"),
        ("a[b] = c", "a b c"),
        ("a.data = b", "a b"),
        ("a", ""),
    ],
)
def test_an_operation_takes_these_operands(text: str, parts: str) -> None:
    source = parsed(text)
    first = source.tree.body[0]
    node = first.value if isinstance(first, ast.Expr) else first
    assert [source.segment(each) for each in operands(node)] == parts.split()


@pytest.mark.parametrize(
    ("text", "is_it"),
    [
        ("x = x.to(d)", True),
        ("x = x.cuda()", True),
        ("self.w = self.w.type_as(x)", True),
        ("self.w = self.w.half()", False),
        ("c[k] = c[k].cpu()", True),
        ("x = y.to(d)", False),
        ("x = x.relu()", False),
        ("x = to(x)", False),
    ],
)
def test_an_assignment_may_move_what_it_assigns_to(text: str, is_it: bool) -> None:
    statement = parsed(text).tree.body[0]
    assert isinstance(statement, ast.Assign)
    assert defuse.moves_itself(statement.value, statement.targets[0]) is is_it


@pytest.mark.parametrize(
    ("text", "is_it"),
    [
        ("x = 1\nHERE", True),
        ("HERE\nx = 1", False),
        ("if a:\n    x = 1\nHERE", False),
        ("if a:\n    x = 1\n    HERE", True),
        ("if a:\n    x = 1\nelse:\n    HERE", False),
        ("for x in a: HERE", True),
        ("for x in a: pass\nHERE", False),
        ("with a as x: HERE", True),
        ("with a as x: pass\nHERE", True),
        ("match a:\n    case [x]: pass\nHERE", False),
        ("import x\nHERE", True),
        ("def f(x): HERE", True),
        ("def f(*x): HERE", True),
        ("def f(x):\n    del x\n    HERE", False),
        ("def f():\n    x = 1\n    def g(): HERE", True),
        ("def f():\n    global x\n    x = 1\n    HERE", False),
        ("def f():\n    HERE\n    x = 1", False),
        ("def f(y=HERE): x = 1", False),
        ("HERE", False),
    ],
)
def test_a_name_is_bound_on_every_way_here(text: str, is_it: bool) -> None:
    source = parsed(text)
    here = next(node for node in ast.walk(source.tree) if isinstance(node, ast.Name) and node.id == "HERE")
    assert defuse.is_bound("x", source, here, {}, {}) is is_it


def test_what_runs_now_has_values_that_the_source_alone_does_not_show() -> None:
    source = parsed("if a:\n    x = 1\nHERE\nx += 1\n")
    here = source.tree.body[1]
    assert [defuse.is_bound("x", source, here, {}, names) for names in ({}, {"x": 1})] == [False, False]
    source = parsed("x += 1\nHERE\n")
    assert [defuse.is_bound("x", source, source.tree.body[0], {}, names) for names in ({}, {"x": 1})] == [False, True]
    assert defuse.is_bound("len", source, source.tree.body[0], {}, {})


def test_the_nearest_above_comes_first_then_what_a_loop_brings_round() -> None:
    source = parsed("x = 1\nfor i in a:\n    x = 2\n    HERE\n    x = 3\nx = 4\n")
    found = defuse.nearest_first(defuse.bindings(source, source.tree, "x"), 4)
    assert [source.segment(each.value) for each in found] == ["2", "1", "4", "3"]
    assert [bool(defuse.loops_round(source, each.statement, 4)) for each in found] == [True, False, False, True]


@pytest.mark.parametrize(
    ("text", "position", "answer"),
    [
        ("zip(a, b)", (1,), ("b", ())),
        ("enumerate(a)", (1, 0), ("a", (0,))),
        ("enumerate(a)", (0,), ("enumerate(a)", (0,))),
        ("a.items()", (1,), ("a.items()", (1,))),
        ("zip(a)", (), ("zip(a)", ())),
    ],
)
def test_a_target_goes_through_this(text: str, position: tuple[int, ...], answer: tuple[str, tuple[int, ...]]) -> None:
    source = parsed(text)
    first = source.tree.body[0]
    assert isinstance(first, ast.Expr)
    iterated, rest = defuse.unpacked(first.value, position)
    assert (source.segment(iterated), rest) == answer


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
    assert defuse.was_passed_by(statement, source, last, ran, Scope(values, {})) == passed_by


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
    assert defuse.is_on_every_way(bound, source, last) == expected
