"""Source code as syntax trees with positions: of files, of cells, and of the instruction that a frame runs."""

import ast
import linecache
import re
import textwrap
import threading
from bisect import bisect_left, bisect_right
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, wraps
from itertools import takewhile
from opcode import opname
from types import CodeType
from typing import Any, Concatenate, Final, NamedTuple, ParamSpec, TypeVar
from unicodedata import normalize

from devtrace.source.matching import nodes_of, variable
from devtrace.source.saved_files import given_file

P = ParamSpec("P")
T = TypeVar("T")
N = TypeVar("N", bound=ast.AST)
_ENDS: Final = re.compile("(?<=\n)|(?<=\r)(?!\n)")
MOST_TEXT: Final = 2_000_000
"""Characters of source that are kept parsed; a tree takes up to forty times the room of its text."""


class Span(NamedTuple):
    """Lines from 1 and columns in UTF-8 bytes from 0, as `ast` counts them; -1 for unknown."""

    line: int
    column: int
    end_line: int
    end_column: int


def lines_of(text: str) -> list[str]:
    """Return the lines with their ends, as Python's parser counts them: a form feed or U+2028 ends no line."""
    found = _ENDS.split(text)
    return found if found[-1] else found[:-1]


NamedFunction = ast.FunctionDef | ast.AsyncFunctionDef
FunctionNode = NamedFunction | ast.Lambda
NO_CODE: Final = ast.Pass()
"""The code at a place that has none."""


@dataclass(frozen=True, eq=False)
class Source:
    """A parsed file, cell or part of one. Its text begins at line `first`; `indent` was cut from each of its lines."""

    file: str
    text: str
    tree: ast.Module
    first: int = 1
    indent: int = 0
    kept: dict[Any, Any] = field(default_factory=dict, repr=False)

    @cached_property
    def _nodes(self) -> "_Nodes":
        return _Nodes(self.tree)

    @cached_property
    def _lines(self) -> list[str]:
        return lines_of(self.text)

    @cached_property
    def imports(self) -> dict[str, str]:
        """Return the full names of all imports, by their local names: T is torch."""
        found: dict[str, str] = {}
        for node in nodes_of(ast.stmt, self.tree):
            match node:
                case ast.Import(names=names):
                    roots = (each.name.partition(".")[0] for each in names if not each.asname)
                    found |= {each.asname: each.name for each in names if each.asname} | {root: root for root in roots}
                case ast.ImportFrom(names=names, module=module, level=0):
                    found |= {each.asname or each.name: f"{module}.{each.name}" for each in names}
        return found

    def known_as(self, full: str) -> str:
        """Return the name that an import gives a module; empty for none."""
        return next((name for name, imported in self.imports.items() if imported == full), "")

    def beginning(self, kind: type[N], first: int, last: int) -> Iterator[N]:
        """Yield the expressions or statements that begin on some lines of the file."""
        for line in range(first - self.first + 1, last - self.first + 2):
            yield from (each for each in self._nodes.at(line) if isinstance(each, kind) and each.lineno == line)

    def parent(self, node: ast.AST) -> ast.AST | None:
        return self._nodes.parent(node)

    def mentioning(self, name: str) -> list[ast.stmt]:
        """Return the file's statements whose text has a name, as it is or as Python reads it: `ﬁt` is `fit`."""
        spans = (lines_of_statement(each) for each in self.tree.body)
        texts = ("".join(self._lines[first - 1 : last]) for first, last in spans)
        found = (name in text or name in normalize("NFKC", text) for text in texts)
        return [each for each, mentions in zip(self.tree.body, found, strict=True) if mentions]

    def part(self, first: int, last: int) -> "Source | None":
        """Return the outermost function or class around some lines of the file, as a source of its own.

        None where they are in no function: code of a file may be about any of its names.
        """
        there = self._nodes.at(last - self.first + 1)
        named = (each for each in there if isinstance(each, NamedFunction))
        within = next((each for each in named if self.span(each).line < first), None)
        if within is None:
            return None
        start, end = lines_of_statement(self.outermost(within))
        return parse("".join(self._lines[start - 1 : end]), self.file, self.first + start - 1)

    def outermost(self, node: ast.AST) -> ast.AST:
        """Return the statement of the file that a node is in."""
        around = list(self.ancestors(node))
        return around[-2] if len(around) > 1 else node

    def block(self, statement: ast.AST) -> list[ast.stmt]:
        """Return the list of statements that contains one; an empty list for what no list contains."""
        parent = self.parent(statement)
        blocks = (getattr(parent, name, None) for name in ("body", "orelse", "finalbody"))
        return next((each for each in blocks if isinstance(each, list) and statement in each), [])

    def ancestors(self, node: ast.AST | None) -> Iterator[ast.AST]:
        """Yield the node itself, then each node around it, out to the module."""
        while node is not None:
            yield node
            node = self.parent(node)

    def below(self, node: ast.AST, top: ast.AST) -> Iterator[ast.AST]:
        """Yield the node itself, then each node around it, as long as it is not another one."""
        return takewhile(lambda each: each is not top, self.ancestors(node))

    def statement(self, node: ast.AST | None) -> ast.stmt:
        """Return the innermost statement around a node; NO_CODE around none."""
        return self.nearest(ast.stmt, node) or NO_CODE

    def nearest(self, kind: type[N], node: ast.AST | None) -> N | None:
        """Return a node itself, or the first around it, that is of a kind."""
        return next((outer for outer in self.ancestors(node) if isinstance(outer, kind)), None)

    def function(self, node: ast.AST) -> FunctionNode | None:
        """Return the innermost function around a node; of a function the one around it."""
        return next((outer for outer in list(self.ancestors(node))[1:] if isinstance(outer, FunctionNode)), None)

    def function_at(self, first: int) -> NamedFunction | None:
        """Return the function that begins at a line of this text, its decorators included."""
        return next((each for each in self._functions_at(first) if isinstance(each, NamedFunction)), None)

    def body_of(self, code: CodeType) -> FunctionNode | None:
        """Return the function that a code object runs; None for a file, a cell or a class."""
        return self.body_at(code.co_firstlineno, code.co_name)

    def body_at(self, first: int, name: str) -> FunctionNode | None:
        """Return the function of a name that begins at a line of the file, its decorators included."""
        begin = self._functions_at(first - self.first + 1)
        return next((each for each in begin if getattr(each, "name", "<lambda>") == name), None)

    def _functions_at(self, line: int) -> Iterator[FunctionNode]:
        """Yield the functions that begin at a line of this text, with their decorators."""
        near = (each for node in self._nodes.at(line) for each in (node, self.parent(node)))
        return (each for each in near if isinstance(each, FunctionNode) and lines_of_statement(each)[0] == line)

    def span(self, node: ast.AST) -> Span:
        """Return a node's span in the file."""
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        end_line, end_column = getattr(node, "end_lineno", None), getattr(node, "end_col_offset", None)
        shift, indent = self.first - 1, self.indent
        return Span(line + shift, column + indent, (end_line or line) + shift, (end_column or column) + indent)

    def segment(self, node: ast.AST) -> str:
        line, column = getattr(node, "lineno", None), getattr(node, "col_offset", None)
        end_line, end_column = getattr(node, "end_lineno", None), getattr(node, "end_col_offset", None)
        if line is None or column is None or end_line is None or end_column is None:
            return ""
        raw = [each.encode() for each in self._lines[line - 1 : end_line]]
        raw[-1] = raw[-1][:end_column]
        raw[0] = raw[0][column:]
        return b"".join(raw).decode()

    def line(self, number: int) -> str:
        """Return a line of the file, its indent included; empty when it is not in this source."""
        index = number - self.first
        return " " * self.indent + self._lines[index].rstrip("\r\n") if 0 <= index < len(self._lines) else ""

    def node_at(self, span: Span) -> ast.AST:
        """Return the expression or statement of a span, else the innermost one around it, else NO_CODE.

        Without columns: the statement that begins at the line, else the innermost one around it.
        """
        there: list[_At] = [(self.span(node), node) for node in self._nodes.at(span.line - self.first + 1)]
        if span.column < 0:
            statements = [each for each in there if isinstance(each[1], ast.stmt)]
            first = min(
                statements, key=lambda at: (at[0].line != span.line, at[0].end_line - at[0].line), default=_NONE
            )
            return first[1]
        around = [each for each in there if each[0][:2] <= span[:2] and span[2:] <= each[0][2:]]
        return max(around, key=_smallness, default=_NONE)[1]


NO_SOURCE: Final = Source("", "", ast.Module([], []))
"""The source of a file that has none."""


def parameters(body: ast.AST, *, starred: bool = False) -> list[str]:
    """Return the names of a function's parameters, positional ones first; `starred`: that of `*args` too."""
    if not isinstance(body, FunctionNode):
        return []
    given = body.args
    rest = [each for each in (given.vararg, given.kwarg) if each is not None] if starred else []
    return [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs, *rest)]


def defaults(function: ast.AST | None) -> Iterator[tuple[str, ast.expr]]:
    """Yield the parameters of a function that have a default, each with that."""
    if isinstance(function, FunctionNode):
        given = function.args
        positional = zip(reversed([*given.posonlyargs, *given.args]), reversed(given.defaults), strict=False)
        words = zip(given.kwonlyargs, given.kw_defaults, strict=True)
        yield from ((each.arg, value) for each, value in (*positional, *words) if value is not None)


def own_name(source: Source, node: ast.AST) -> str:
    """Return the name by which the method around a node knows its object: `self`, or whatever it is called.

    Of a package's file only the function is kept; one that is indented is taken for a method.
    """
    classes = (ast.ClassDef, ast.Module) if source.indent else (ast.ClassDef,)
    methods = (each for each in source.ancestors(node) if isinstance(source.parent(each), classes))
    method = next((each for each in methods if isinstance(each, FunctionNode)), None)
    is_static = any(variable(each) == "staticmethod" for each in getattr(method, "decorator_list", ()))
    return "" if method is None or is_static else next(iter(parameters(method)), "")


def kept_with_source(find: Callable[Concatenate[Source, P], T]) -> Callable[Concatenate[Source, P], T]:
    """Cache a function's results on its source, for as long as that is kept."""

    @wraps(find)
    def found(source: Source, /, *args: P.args, **words: P.kwargs) -> T:
        key = find, *args
        if key not in source.kept:
            source.kept[key] = find(source, *args, **words)
        result: T = source.kept[key]
        return result

    return found


_At = tuple[Span, ast.AST]
_NONE: Final[_At] = Span(0, 0, 0, 0), NO_CODE


def _smallness(found: _At) -> tuple[int, int, int, int, bool]:
    at, node = found
    return at.line, at.column, -at.end_line, -at.end_column, isinstance(node, ast.expr)


def lines_of_statement(node: ast.AST) -> tuple[int, int]:
    """Return the first and the last line of a statement, or a lambda, with its decorators."""
    lines = [getattr(each, "lineno", 1) for each in (node, *getattr(node, "decorator_list", ()))]
    return min(lines), getattr(node, "end_lineno", None) or max(lines)


class _Nodes:
    """Nodes of a line, and what is around a node: of a long file only statements that were asked for are walked."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        self._starts = [lines_of_statement(each)[0] for each in tree.body]
        self._parents: dict[ast.AST, ast.AST] = {}
        self._on_line: dict[int, list[ast.expr | ast.stmt]] = defaultdict(list)
        self._known: set[int] = set()

    def at(self, line: int) -> list[ast.expr | ast.stmt]:
        """Return the expressions and statements that a line of the text has a part of."""
        first, last = bisect_left(self._starts, line), bisect_right(self._starts, line)
        self._add(range(max(first - 1, 0), last))
        return self._on_line.get(line, [])

    def parent(self, node: ast.AST) -> ast.AST | None:
        if node is not self._tree and node not in self._parents:
            self.at(getattr(node, "lineno", 0))
            if node not in self._parents:  # it knows no line of its own
                self._add(range(len(self._starts)))
        return self._parents.get(node)

    def _add(self, numbers: range) -> None:
        for number in [each for each in numbers if each not in self._known]:
            self._known.add(number)
            statement = self._tree.body[number]
            self._parents[statement] = self._tree
            for node in ast.walk(statement):
                self._parents.update(dict.fromkeys(ast.iter_child_nodes(node), node))
                if isinstance(node, ast.expr | ast.stmt):
                    for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                        self._on_line[line].append(node)


_kept: Final[OrderedDict[tuple[str, str, int], Source | None]] = OrderedDict()
_keeping: Final = threading.Lock()


def parse(text: str, file: str = "", first: int = 1) -> Source | None:
    """Parse a text, which may be an indented part of a file; None when it is not Python. The last ones are kept."""
    key = text, file, first
    with _keeping:
        if key not in _kept:
            _kept[key] = _parsed(text, file, first)
            size = sum(len(each) for each, _, _ in _kept)
            while size > MOST_TEXT and len(_kept) > 1:
                size -= len(_kept.popitem(last=False)[0][0])
        _kept.move_to_end(key)
        return _kept[key]


def _parsed(text: str, file: str, first: int) -> Source | None:
    cut = textwrap.dedent(text) if text[:1] in (" ", "\t") else text
    indent = len(text) - len(text.lstrip(" \t")) if cut is not text else 0
    try:
        return Source(file, cut, ast.parse(cut), first, indent)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def read(file: str) -> Source:
    """Parse a file or a cell, by the name that its code objects carry; NO_SOURCE when nobody has it."""
    text = text_of(file)
    return (parse(text, file) if text else None) or NO_SOURCE


def text_of(file: str) -> str:
    """Return the text of a file or a cell; empty where nobody has it."""
    if (given := given_file(file)) is not None:
        return given.text
    try:
        return "".join(linecache.getlines(file))
    except Exception:  # noqa: BLE001 (a loader's get_source is anybody's code)
        return ""


def node_of(code: CodeType, instruction: int) -> tuple[Source, ast.AST]:
    """Return the expression or statement of an instruction, in its file."""
    source = read(code.co_filename)
    return source, source.node_at(span_at(code, instruction))


def span_at(code: CodeType, instruction: int) -> Span:
    """Return the span of an instruction (`frame.f_lasti`, `tb_lasti`)."""
    positions = list(code.co_positions())
    index = _where_tested(code.co_code, instruction // 2)
    if not 0 <= index < len(positions):
        return Span(code.co_firstlineno, -1, -1, -1)
    line, end_line, column, end_column = positions[index]
    if line is None or column is None or end_line is None or end_column is None:
        return Span(line or code.co_firstlineno, -1, end_line or -1, -1)
    return Span(line, column, end_line, end_column)


def _where_tested(instructions: bytes, index: int) -> int:
    """Return the instruction with a jump's condition: all jumps of `a == 1 and b.any()` are at the first part."""
    if not 0 <= 2 * index < len(instructions) or not opname[instructions[2 * index]].startswith(_TESTS):
        return index
    before = range(index - 1, -1, -1)
    return next((at for at in before if not opname[instructions[2 * at]].startswith((*_TESTS, "COPY"))), index)


_TESTS: Final = ("POP_JUMP", "JUMP_IF", "TO_BOOL", "EXTENDED_ARG", "CACHE")
