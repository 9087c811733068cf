"""Source code as syntax trees with positions: of files, of cells, and of the instruction that a frame runs."""

from __future__ import annotations

import ast
import linecache
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import CodeType
from typing import NamedTuple


class Span(NamedTuple):
    """Lines from 1 and columns in UTF-8 bytes from 0, as `ast` counts them; -1 for unknown."""

    line: int
    column: int
    end_line: int
    end_column: int


FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@dataclass(frozen=True, eq=False)
class Source:
    """A parsed file, cell or part of one. Its text begins at line `first`; `indent` was cut from each of its lines."""

    file: str
    text: str
    tree: ast.Module
    first: int = 1
    indent: int = 0

    @cached_property
    def _parents(self) -> dict[ast.AST, ast.AST]:
        return {inner: outer for outer in ast.walk(self.tree) for inner in ast.iter_child_nodes(outer)}

    @cached_property
    def _spans(self) -> dict[ast.expr | ast.stmt, Span]:
        return {node: self.span(node) for node in ast.walk(self.tree) if isinstance(node, ast.expr | ast.stmt)}

    def parent(self, node: ast.AST) -> ast.AST | None:
        return self._parents.get(node)

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the node itself, then each node around it, out to the module."""
        current: ast.AST | None = node
        while current is not None:
            yield current
            current = self.parent(current)

    def statement(self, node: ast.AST) -> ast.stmt | None:
        """Return the innermost statement around a node."""
        return next((outer for outer in self.ancestors(node) if isinstance(outer, ast.stmt)), None)

    def function(self, node: ast.AST) -> FunctionNode | None:
        """Return the innermost function around a node; of a function the one around it."""
        above = list(self.ancestors(node))[1:]
        return next((outer for outer in above if isinstance(outer, FunctionNode)), None)

    def function_at(self, first: int) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """Return the function that begins at a line of this text, its decorators included."""
        functions = (node for node in ast.walk(self.tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
        return next((each for each in functions if _first_line(each) == first), None)

    def span(self, node: ast.AST) -> Span:
        """Return a node's span in the file."""
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        end_line, end_column = getattr(node, "end_lineno", None), getattr(node, "end_col_offset", None)
        shift, indent = self.first - 1, self.indent
        return Span(line + shift, column + indent, (end_line or line) + shift, (end_column or column) + indent)

    def segment(self, node: ast.AST) -> str:
        return ast.get_source_segment(self.text, node) or ""

    def line(self, number: int) -> str:
        """Return a line of the file, its indent included; empty when it is not in this source."""
        lines = self.text.splitlines()
        index = number - self.first
        return " " * self.indent + lines[index] if 0 <= index < len(lines) else ""

    def node_at(self, span: Span) -> ast.AST | None:
        """Return the expression or statement of a span, else the innermost one around it.

        Without columns: the statement that begins at the line, else the innermost one around it.
        """
        if span.column < 0:
            return self._statement_at(span.line)
        around = [node for node, at in self._spans.items() if at[:2] <= span[:2] and span[2:] <= at[2:]]
        return max(around, key=self._smallness, default=None)

    def _smallness(self, node: ast.expr | ast.stmt) -> tuple[int, int, int, int, bool]:
        at = self._spans[node]
        return at.line, at.column, -at.end_line, -at.end_column, isinstance(node, ast.expr)

    def _statement_at(self, line: int) -> ast.AST | None:
        statements = [node for node in self._spans if isinstance(node, ast.stmt)]
        around = [node for node in statements if self._spans[node].line <= line <= self._spans[node].end_line]

        def distance(node: ast.stmt) -> tuple[bool, int]:
            at = self._spans[node]
            return at.line != line, at.end_line - at.line

        return min(around, key=distance, default=None)


def _first_line(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])


@lru_cache(maxsize=256)
def parse(text: str, file: str = "", first: int = 1) -> Source | None:
    """Parse a text, which may be an indented part of a file; None when it is not Python."""
    cut = textwrap.dedent(text) if text[:1] in (" ", "\t") else text
    indent = len(text) - len(text.lstrip(" \t")) if cut is not text else 0
    try:
        return Source(file, cut, ast.parse(cut), first, indent)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def read(file: str) -> Source | None:
    """Parse a file or a cell, by the name that its code objects carry; None when it has no source."""
    try:
        text = "".join(linecache.getlines(file))
    except Exception:  # noqa: BLE001 (a loader's get_source is anybody's code)
        return None
    return parse(text, file) if text else None


def span_at(code: CodeType, instruction: int) -> Span:
    """Return the span of an instruction (`frame.f_lasti`, `tb_lasti`)."""
    positions = list(code.co_positions())
    index = instruction // 2
    if not 0 <= index < len(positions):
        return Span(code.co_firstlineno, -1, -1, -1)
    line, end_line, column, end_column = positions[index]
    if line is None or column is None or end_line is None or end_column is None:
        return Span(line or code.co_firstlineno, -1, end_line or -1, -1)
    return Span(line, column, end_line, end_column)
