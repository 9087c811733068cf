"""Source is found and names are followed without a line of the user's code being run."""

from __future__ import annotations

import ast
import collections
import linecache
import sys
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import pytest
from torch import nn

from devtrace.runtime import overlay
from devtrace.source.parsing import MOST_TEXT, NO_SOURCE, Span, lines_of, lines_of_statement, parse, read, span_at
from devtrace.source.safe_values import MISSING, Scope, evaluate, instance_dict, values
from trees import parsed


def value(text: str, **names: Any) -> Any:
    return evaluate(ast.parse(text, mode="eval").body, Scope(names, {}))


def paths(text: str, **names: Any) -> list[str]:
    source = parsed(text)
    return [found.text for found in values(source.tree, source, Scope(names, {}))]


class Hostile:
    """Every way in is a trap."""

    plain = "class value"

    def __init__(self) -> None:
        self.stored = 7

    @property
    def computed(self) -> int:
        raise AssertionError("a property ran")

    @property
    def behind(self) -> int:
        """Return the stored attribute."""
        return self.stored

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"__getattr__({name}) ran")

    def __getitem__(self, name: object) -> Any:
        raise AssertionError("__getitem__ ran")

    def __repr__(self) -> str:
        raise AssertionError("__repr__ ran")

    def __bool__(self) -> bool:
        raise AssertionError("__bool__ ran")

    def __eq__(self, other: object) -> bool:
        raise AssertionError("__eq__ ran")

    __hash__ = None  # type: ignore[assignment]


class Disguised(Hostile):
    @property  # type: ignore[misc]
    def __class__(self) -> type:
        raise AssertionError("__class__ ran")


class Point(NamedTuple):
    x: int
    y: int


class Slotted:
    __slots__ = ("empty", "full")

    def __init__(self) -> None:
        self.full = 3


class OwnDict(dict[str, int]):
    def __getitem__(self, key: str) -> int:
        raise AssertionError("__getitem__ ran")


def test_names_attributes_and_constant_subscripts_are_followed() -> None:
    batch = {"mask": [1, 2], "n": 3}
    assert value("batch['mask'][-1]", batch=batch) == 2
    assert value("batch[key]", batch=batch, key="n") == 3
    assert value("p.y", p=Point(1, 2)) == 2
    assert value("s.full", s=Slotted()) == 3
    assert value("h.plain", h=Hostile()) == "class value"
    assert value("sys.version", sys=sys) == sys.version
    assert value("d['a']", d=collections.OrderedDict(a=1)) == 1
    assert value("d['a']", d=collections.defaultdict(list, a=1)) == 1
    assert value("(y := x)", y=4) == 4


def test_what_look_ups_cannot_find_is_missing() -> None:
    assert value("nothing") is MISSING
    assert value("s.empty", s=Slotted()) is MISSING
    assert value("d['a']", d=OwnDict(a=1)) is MISSING
    assert value("x[0]", x=[]) is MISSING
    assert value("x['a']", x=[1]) is MISSING
    assert value("x[1:2]", x=[1]) is MISSING
    assert value("f()", f=len) is MISSING
    assert value("x.append", x=[]) is MISSING


@pytest.mark.parametrize("kind", [Hostile, Disguised])
def test_no_code_of_the_users_runs(kind: type) -> None:
    h = kind()
    assert value("h.stored", h=h) == 7
    assert value("h.behind", h=h) == 7
    assert value("h.computed", h=h) is MISSING
    assert value("h.unheard", h=h) is MISSING
    assert value("h[0]", h=h) is MISSING
    assert value("[1][h]", h=h) is MISSING
    assert paths("h.computed + h.stored * h[0]", h=h) == ["h", "h.stored", "h"]


def test_a_shadowed_dict_is_not_asked() -> None:
    class Shadow:
        @property
        def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
            raise AssertionError("__dict__ ran")

    assert instance_dict(Shadow()) == {}


def test_modules_are_read_through_their_tables() -> None:
    first, last = nn.Linear(2, 3), nn.Linear(3, 1)
    model = nn.Sequential(first, nn.Sequential(last))
    assert value("m[0].weight", m=model) is first.weight
    assert value("m[-1][0].bias", m=model) is last.bias
    assert value("m.heads['a']", m=model) is MISSING
    assert value("d['a']", d=nn.ModuleDict({"a": model})) is model
    assert value("p[0]", p=nn.ParameterList([first.weight])) is not MISSING


def test_the_paths_of_a_line_are_the_longest_that_have_a_value() -> None:
    class Owner:
        table = (1,)

    got = paths(
        "y = self.table[: n].to(d) + f(g=batch['k'], *[c.x for c in cs])", self=Owner(), n=3, d=1, batch={"k": 1}
    )
    assert got == ["self.table", "n", "d", "batch['k']"]


def test_a_comprehension_is_looked_into_and_a_lambda_is_not() -> None:
    assert paths("[a * b for a in xs]", b=1, xs=[1]) == ["b", "xs"]
    assert paths("lambda: a", a=1) == []


CODE = """\
def outer(x):
    y = (x
         .double()
         .sum())
    y += x * 2
    return y
"""


def test_an_instruction_leads_to_its_node() -> None:
    source = parsed(CODE, "a.py")
    code = compile(CODE, "a.py", "exec").co_consts[0]
    wanted = {span_at(code, 2 * index) for index in range(len(list(code.co_positions())))}
    nodes = {source.segment(source.node_at(span)) for span in wanted}
    assert {"x * 2", "y += x * 2", "return y"} <= nodes
    assert any(text.startswith(("(x\n", "x\n")) for text in nodes)


def test_nodes_know_what_is_around_them() -> None:
    source = parsed("class A:\n    def f(self):\n        return [g(i) for i in self.x]\n")
    node = source.node_at(Span(3, 16, 3, 20))
    assert isinstance(node, ast.Call)
    function = source.function(node)
    assert isinstance(function, ast.FunctionDef)
    assert function.name == "f"
    assert isinstance(source.statement(node), ast.Return)


def test_what_is_around_a_node_ends_below_another() -> None:
    source = parsed("while a:\n    b = f(c + 1)")
    loop, assigned = source.tree.body[0], source.statement(source.node_at(Span(2, 10, 2, 11)))
    (c,) = (each for each in ast.walk(loop) if getattr(each, "id", "") == "c")
    assert [type(each).__name__ for each in source.up_to(c, loop)] == ["Name", "BinOp", "Call", "Assign"]
    assert [*source.up_to(c, c)] == []
    assert [*source.up_to(c, assigned)] == [*source.up_to(c, loop)][:3]


def test_without_columns_the_line_decides() -> None:
    source = parsed(CODE)
    node = source.node_at(Span(3, -1, -1, -1))
    assert source.segment(node).startswith("y = (x")


def test_an_indented_part_of_a_file_keeps_its_lines_and_columns() -> None:
    text = "    def f(self):\n        é = 1; return self.x + 1\n"
    part = parse(text, "a.py", 40)
    assert part is not None
    node = part.node_at(Span(41, 23, 41, 33))
    assert node is not None
    assert part.segment(node) == "self.x + 1"
    assert part.span(node) == Span(41, 23, 41, 33)
    assert part.line(41) == "        é = 1; return self.x + 1"
    assert part.line(7) == ""


def test_files_and_cells_are_read_by_the_name_of_their_code(tmp_path: Path) -> None:
    linecache.cache["<cell 5>"] = (3, None, ["x=1"], "<cell 5>")
    (tmp_path / "m.py").write_text("y = 2\n")
    cell, file = read("<cell 5>"), read(str(tmp_path / "m.py"))
    assert (cell.text, file.text) == ("x=1", "y = 2\n")
    assert read("<nowhere>") is NO_SOURCE
    assert parse("not python at all") is None


def test_a_frame_gives_closure_variables_too() -> None:
    hidden = 5

    def inner() -> FrameType:
        assert hidden
        return sys._getframe()

    scope = Scope.of(inner())
    assert scope.lookup("hidden") == 5
    assert scope.lookup("pytest") is pytest
    assert scope.lookup("unheard") is MISSING


ODD_LINES = 'a = "\x0c \u2028 \x85"\n\x0cif a:\r\n    b = f(\n        "é\x1c", a\n    )\rc = 3\n'


def test_lines_are_those_of_the_parser_whatever_else_ends_one_for_str_splitlines() -> None:
    source = parsed(ODD_LINES)
    assert [source.line(node.lineno).strip(" \x0c")[:2] for node in source.tree.body] == ["a ", "if", "c "]
    for node in ast.walk(source.tree):
        assert source.segment(node) == (ast.get_source_segment(ODD_LINES, node) or "")
    assert lines_of("a\nb\r\nc\rd\x0ce") == ["a\n", "b\r\n", "c\r", "d\x0ce"]
    assert (lines_of(""), lines_of("a\n")) == ([], ["a\n"])


def test_every_node_is_found_again_by_its_span() -> None:
    source = parsed(Path(__file__).read_text())
    for node in ast.walk(source.tree):
        if isinstance(node, ast.expr | ast.stmt) and not isinstance(source.parent(node), ast.JoinedStr):
            found = source.node_at(source.span(node))
            assert found is not None
            assert source.span(found) == source.span(node)


def test_what_is_kept_parsed_is_bounded_by_its_text() -> None:
    long = f"x = 1\n{'#' * MOST_TEXT}\n"
    first = parse("y = 2\n", "a.py")
    assert parse("y = 2\n", "a.py") is first
    assert parse(long) is parse(long)
    assert parse("y = 2\n", "a.py") is not first


def test_the_text_that_replaces_a_file_has_the_lines_that_linecache_would_read(tmp_path: Path) -> None:
    (tmp_path / "odd.py").write_bytes(ODD_LINES.encode())
    assert overlay._lines(ODD_LINES.encode()) == linecache.getlines(str(tmp_path / "odd.py"))


class Asked:
    """Notes the frame's instruction when it is asked for its truth."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def __bool__(self) -> bool:
        frame = sys._getframe(1)
        self.texts.append(text_at(frame.f_code, frame.f_lasti))
        return True


def text_at(code: CodeType, instruction: int) -> str:
    source = read(code.co_filename)
    return source.segment(source.node_at(span_at(code, instruction)))


def asked_in_a_row(flag: str, x: Asked, y: Asked) -> None:
    if flag == "nan" and x:
        flag += "!"
    while not x or y:
        break
    assert y
    flag = "a" if (x and y) else "b"


def test_of_a_condition_the_part_is_found_that_was_asked() -> None:
    x, y = Asked(), Asked()
    asked_in_a_row("nan", x, y)
    assert (x.texts, y.texts) == (["x", "x", "x"], ["y", "y", "y"])


LONG = "import torch\n" + "\n".join(f"def f{n}(x):\n    y = [x + {n} for x in x]\n    return y\n" for n in range(50))


@pytest.mark.parametrize("asked_first", [(), (40, 120), (150, 3)])
def test_a_node_is_found_and_has_its_surroundings_whatever_was_asked_for_before(asked_first: tuple[int, ...]) -> None:
    source = parsed(f"{LONG}# {asked_first}\n")
    for line in asked_first:
        source.node_at(Span(line, -1, -1, -1))
    for node in ast.walk(source.tree):
        for inner in ast.iter_child_nodes(node):
            assert isinstance(inner, ast.expr_context | ast.operator) or source.parent(inner) is node
    body = source.function_at(6)
    assert body is not None
    assert (body.name, source.outermost(body.body[0])) == ("f1", body)


def test_a_part_is_the_function_or_class_of_the_file_around_lines_of_a_function() -> None:
    text = "a = 1\n@wrapped\nclass C:\n    b = a\n    def run(self):\n        c = b\n        return c\n\nd = 2\n"
    source = parsed(text, "f.py")
    part = source.part(6, 6)
    assert part is not None
    assert (part.first, part.text) == (2, "".join(text.splitlines(keepends=True)[1:7]))
    assert [source.part(line, line) for line in (1, 2, 4, 9)] == [None] * 4


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("table", [2, 3, 7]),  # `ｔａｂｌｅ` is the same name to Python; a decorator belongs to its function
        ("fit", [5]),
        ("nowhere", []),
    ],
)
def test_a_name_is_looked_for_in_the_statements_that_mention_it(name: str, lines: list[int]) -> None:
    source = parsed(
        "import torch\nx.ｔａｂｌｅ = 1\n@table\ndef f(): pass\nmodel.ﬁt(x)\ny = 2\ndef g():\n    table()\n"
    )
    assert [lines_of_statement(each)[0] for each in source.mentioning(name)] == lines
