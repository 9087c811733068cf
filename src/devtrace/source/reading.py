"""Reading source code, and the values its names have, without running any of it.

The recorder explains errors that are raised above the dispatcher by looking at the failing line's own names; diagnosis
finds births, names and fixes in the same way. Both stand on this module, which knows no torch and calls no code of the
user's: no property, `__getattr__`, `__getitem__`, `__class__` or `__repr__` of theirs runs here, only look-ups in
dictionaries and C descriptors. (Hence `issubclass(type(x), T)` throughout: `isinstance` would ask the object.)
"""

from __future__ import annotations

import ast
import linecache
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import CodeType, FrameType, FunctionType, GetSetDescriptorType, MappingProxyType, MemberDescriptorType
from typing import Any, Final, NamedTuple


class Span(NamedTuple):
    """Where a piece of source stands: lines from 1, columns in UTF-8 bytes from 0 (as `ast` counts), -1 for unknown."""

    line: int
    column: int
    end_line: int
    end_column: int


FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class _Placed(NamedTuple):
    node: ast.expr | ast.stmt
    begin: tuple[int, int]
    end: tuple[int, int]


def _smallness(placed: _Placed) -> tuple[tuple[int, int], tuple[int, int], bool]:
    end_line, end_column = placed.end
    return placed.begin, (-end_line, -end_column), isinstance(placed.node, ast.expr)


@dataclass(frozen=True, eq=False)
class Source:
    """A parsed file, cell or part of one. Its text begins at line `first`; `indent` was cut from each of its lines."""

    file: str
    text: str
    tree: ast.Module
    first: int = 1
    indent: int = 0
    _parents: dict[ast.AST, ast.AST] = field(default_factory=dict, repr=False)
    _nodes: list[_Placed] = field(default_factory=list, repr=False)

    def parent(self, node: ast.AST) -> ast.AST | None:
        if not self._parents:
            for outer in ast.walk(self.tree):
                for inner in ast.iter_child_nodes(outer):
                    self._parents[inner] = outer
        return self._parents.get(node)

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """The node itself, then what it stands in, out to the module."""
        current: ast.AST | None = node
        while current is not None:
            yield current
            current = self.parent(current)

    def statement(self, node: ast.AST) -> ast.stmt | None:
        """The innermost statement around a node."""
        return next((outer for outer in self.ancestors(node) if isinstance(outer, ast.stmt)), None)

    def function(self, node: ast.AST) -> FunctionNode | None:
        """The innermost function around a node (the function itself has the one around it)."""
        above = list(self.ancestors(node))[1:]
        return next((outer for outer in above if isinstance(outer, FunctionNode)), None)

    def klass(self, node: ast.AST) -> ast.ClassDef | None:
        return next((outer for outer in list(self.ancestors(node))[1:] if isinstance(outer, ast.ClassDef)), None)

    def span(self, node: ast.AST) -> Span:
        """A node's place in the file."""
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        end_line, end_column = getattr(node, "end_lineno", None), getattr(node, "end_col_offset", None)
        shift = self.first - 1
        return Span(
            line + shift,
            column + self.indent,
            (end_line or line) + shift,
            (end_column or column) + self.indent,
        )

    def segment(self, node: ast.AST) -> str:
        """The node's own text, as written."""
        return ast.get_source_segment(self.text, node) or ""

    def line(self, number: int) -> str:
        """A line of the file, its indent included; empty when it is not in this source."""
        lines = self.text.splitlines()
        index = number - self.first
        return " " * self.indent + lines[index] if 0 <= index < len(lines) else ""

    def node_at(self, span: Span) -> ast.AST | None:
        """The node that an instruction's positions mean: the expression or statement of this span, else the one around.

        Without columns: the statement that begins at the line, else the innermost one around it.
        """
        if span.column < 0:
            return self._statement_at(span.line)
        shift = self.first - 1
        begin = (span.line - shift, span.column - self.indent)
        end = (span.end_line - shift, span.end_column - self.indent)
        around = [placed for placed in self._placed() if placed.begin <= begin and end <= placed.end]
        smallest = max(around, key=_smallness, default=None)
        return smallest and smallest.node

    def _statement_at(self, line: int) -> ast.AST | None:
        wanted = line - self.first + 1
        around = [
            placed
            for placed in self._placed()
            if isinstance(placed.node, ast.stmt) and placed.begin[0] <= wanted <= placed.end[0]
        ]
        best = min(
            around, key=lambda placed: (placed.begin[0] != wanted, placed.end[0] - placed.begin[0]), default=None
        )
        return best and best.node

    def _placed(self) -> list[_Placed]:
        if not self._nodes:
            self._nodes.extend(
                _Placed(
                    node, (node.lineno, node.col_offset), (node.end_lineno or node.lineno, node.end_col_offset or 0)
                )
                for node in ast.walk(self.tree)
                if isinstance(node, ast.expr | ast.stmt)
            )
        return self._nodes


@lru_cache(maxsize=256)
def parse(text: str, file: str = "", first: int = 1) -> Source | None:
    """The source of a text, which may be an indented part of a file; None when it is not Python."""
    cut = textwrap.dedent(text) if text[:1] in (" ", "\t") else text
    indent = len(text) - len(text.lstrip(" \t")) if cut is not text else 0
    try:
        return Source(file, cut, ast.parse(cut), first, indent)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def read(file: str) -> Source | None:
    """The source of a file or a cell, by the name that its code objects carry; None when there is none to be had."""
    try:
        text = "".join(linecache.getlines(file))
    except Exception:  # noqa: BLE001 (a loader's get_source is anybody's code)
        return None
    return parse(text, file) if text else None


def span_at(code: CodeType, instruction: int) -> Span:
    """The span of an instruction (`frame.f_lasti`, `tb_lasti`)."""
    positions = list(code.co_positions())
    index = instruction // 2
    if not 0 <= index < len(positions):
        return Span(code.co_firstlineno, -1, -1, -1)
    line, end_line, column, end_column = positions[index]
    if line is None or column is None or end_line is None or end_column is None:
        return Span(line or code.co_firstlineno, -1, end_line or -1, -1)
    return Span(line, column, end_line, end_column)


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False


MISSING: Final = _Missing()
_FIELD: Final = type(Span.__dict__["line"])  # how a named tuple keeps its fields


@dataclass(frozen=True, slots=True)
class Scope:
    """What names mean at a place: locals (closure variables among them) before globals."""

    locals: Mapping[str, Any]
    globals: Mapping[str, Any]

    @classmethod
    def of(cls, frame: FrameType) -> Scope:
        return cls(frame.f_locals, frame.f_globals)

    def lookup(self, name: str) -> Any:
        for names in (self.locals, self.globals):
            if name in names:
                return names[name]
        return MISSING


def evaluate(node: ast.AST, scope: Scope) -> Any:
    """The value of a name, an attribute path or a constant subscript; MISSING when look-ups alone cannot tell."""
    if isinstance(node, ast.Name):
        return scope.lookup(node.id)
    if isinstance(node, ast.Attribute):
        return attribute(evaluate(node.value, scope), node.attr)
    if isinstance(node, ast.Subscript):
        return item(evaluate(node.value, scope), constant(node.slice, scope))
    if isinstance(node, ast.NamedExpr):
        return evaluate(node.target, scope)
    return MISSING


def constant(node: ast.AST, scope: Scope) -> Any:
    """A subscript's index: a literal, or a name that holds a plain int or str."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) in (int, str) else MISSING
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        value = node.operand.value
        return -value if type(value) is int else MISSING
    value = evaluate(node, scope)
    return value if type(value) in (int, str) else MISSING


def attribute(owner: Any, name: str) -> Any:
    """`owner.name` where that is a stored value: in the instance, a module's tables, a slot, the class, or behind a
    property that only returns such a value (its source is read, it is not run)."""
    if owner is MISSING:
        return MISSING
    own = instance_dict(owner)
    found = _class_attribute(owner, name)
    if issubclass(type(found), property):
        return _plain_property(owner, found)
    if name in own:
        return own[name]
    for table in ("_parameters", "_buffers", "_modules"):
        held = own.get(table)
        if isinstance(held, dict) and name in held:
            return dict.get(held, name)
    if type(found) in (MemberDescriptorType, _FIELD):
        try:
            return found.__get__(owner, type(owner))
        except AttributeError:
            return MISSING
    bound = _class_attribute(found, "__get__") if found is not MISSING else None
    return found if bound is MISSING else MISSING


def instance_dict(owner: Any) -> Mapping[str, Any]:
    """What is stored on an object itself, without asking the object."""
    for klass in type.__dict__["__mro__"].__get__(type(owner)):
        found = type.__dict__["__dict__"].__get__(klass).get("__dict__")
        if type(found) in (GetSetDescriptorType, MemberDescriptorType):
            held = found.__get__(owner, type(owner))
            return held if issubclass(type(held), dict | MappingProxyType) else {}
        if found is not None:
            return {}
    return {}


def _class_attribute(owner: Any, name: str) -> Any:
    klass = owner if issubclass(type(owner), type) else type(owner)
    for base in type.__dict__["__mro__"].__get__(klass):
        held = type.__dict__["__dict__"].__get__(base)
        if name in held:
            return held[name]
    return MISSING


def _plain_property(owner: Any, found: property) -> Any:
    """What `@property def x(self): return self._x` stands for, read from its source."""
    given = _returned(owner, found)
    return evaluate(*given) if given is not None and isinstance(given[0], ast.Attribute) else MISSING


def returned_by_property(owner: Any, name: str) -> tuple[ast.expr, Scope] | None:
    """The expression that a property of an object returns and what it means there; None if it does more than that."""
    found = _class_attribute(owner, name)
    return _returned(owner, found) if issubclass(type(found), property) else None


def _returned(owner: Any, found: property) -> tuple[ast.expr, Scope] | None:
    code = getattr(found.fget, "__code__", None)
    source = read(code.co_filename) if isinstance(code, CodeType) else None
    if not isinstance(code, CodeType) or source is None or code.co_argcount != 1:
        return None
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name and _begins_at(node, code.co_firstlineno):
            body = [part for part in node.body if not _is_docstring(part)]
            if len(body) == 1 and isinstance(body[0], ast.Return) and body[0].value is not None:
                return body[0].value, Scope({code.co_varnames[0]: owner}, {})
    return None


def _begins_at(node: ast.FunctionDef, line: int) -> bool:
    return line == min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def item(owner: Any, index: Any) -> Any:
    """`owner[index]` of a dict, list, tuple or one of torch's module containers, if its type indexes as usual."""
    if owner is MISSING or index is MISSING:
        return MISSING
    getter = _class_attribute(owner, "__getitem__")
    if getter is dict.__dict__["__getitem__"]:
        return dict.get(owner, index, MISSING)
    if getter is list.__dict__["__getitem__"] or getter is tuple.__dict__["__getitem__"]:
        try:
            return getter(owner, index)
        except (IndexError, TypeError):
            return MISSING
    if type(getter) is FunctionType and getter.__module__ == "torch.nn.modules.container":
        return _contained(instance_dict(owner), index)
    return MISSING


def _contained(own: Mapping[str, Any], index: int | str) -> Any:
    for table in ("_modules", "_parameters"):
        held = own.get(table)
        if isinstance(held, dict) and held:
            key = str(index + len(held)) if isinstance(index, int) and index < 0 else str(index)
            if key in held:
                return dict.get(held, key)
    return MISSING


class Value(NamedTuple):
    """A path expression of the source and what it holds."""

    node: ast.expr
    text: str
    value: Any


def values(node: ast.AST, source: Source, scope: Scope) -> list[Value]:
    """The paths (`x`, `self.table`, `batch["mask"]`) that a piece of code reads, in its order, with their values.

    Of `self.table[: n].to(d)` it is `self.table`: where a path goes on by a call, a slice or a property, what leads
    there is given. Functions and classes defined inside are not looked into.
    """
    return [found for path in _paths(node) if (found := _longest(path, source, scope)) is not None]


def _paths(node: ast.AST) -> Iterator[ast.expr]:
    """Maximal chains of names, attributes and subscripts below a node, and those inside their indexes."""
    if isinstance(node, ast.Name | ast.Attribute | ast.Subscript | ast.NamedExpr):
        yield node
    inner = _chain_parts(node) if isinstance(node, ast.Attribute | ast.Subscript) else ast.iter_child_nodes(node)
    for child in inner:
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            yield from _paths(child)


def _chain_parts(node: ast.AST) -> Iterator[ast.AST]:
    """What hangs off a chain without being part of it: its indexes, and what it starts from if that is no name."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        if isinstance(node, ast.Subscript):
            yield node.slice
        node = node.value
    if not isinstance(node, ast.Name):
        yield node


def _longest(path: ast.expr, source: Source, scope: Scope) -> Value | None:
    while (value := evaluate(path, scope)) is MISSING:
        if not isinstance(path, ast.Attribute | ast.Subscript):
            return None
        path = path.value
    return Value(path, source.segment(path), value)
