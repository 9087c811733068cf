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
from devtrace.source.saved_files import saved_file

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
    lines = _ENDS.split(text)
    return lines if lines[-1] else lines[:-1]


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
        full: dict[str, str] = {}
        for node in nodes_of(ast.stmt, self.tree):
            match node:
                case ast.Import(names=names):
                    roots = (each.name.partition(".")[0] for each in names if not each.asname)
                    full |= {each.asname: each.name for each in names if each.asname} | {root: root for root in roots}
                case ast.ImportFrom(names=names, module=module, level=0):
                    full |= {each.asname or each.name: f"{module}.{each.name}" for each in names}
        return full

    def known_as(self, full: str) -> str:
        """Return the name that an import gives a module; empty for none."""
        return next((name for name, imported in self.imports.items() if imported == full), "")

    def beginning(self, kind: type[N], first: int, last: int) -> Iterator[N]:
        """Yield the expressions or statements of a kind that begin on the lines `first` to `last` of the file."""
        for line in range(first - self.first + 1, last - self.first + 2):
            yield from (node for node in self._nodes.at(line) if isinstance(node, kind) and node.lineno == line)

    def parent(self, node: ast.AST) -> ast.AST | None:
        return self._nodes.parent(node)

    def mentioning(self, name: str) -> list[ast.stmt]:
        """Return the file's statements whose text has a name, as it is or as Python reads it: `ﬁt` is `fit`."""
        spans = (lines_of_statement(statement) for statement in self.tree.body)
        texts = ("".join(self._lines[first - 1 : last]) for first, last in spans)
        mentions = (name in text or name in normalize("NFKC", text) for text in texts)
        return [statement for statement, mentioned in zip(self.tree.body, mentions, strict=True) if mentioned]

    def part(self, first: int, last: int) -> "Source | None":
        """Return the outermost function or class around the lines `first` to `last`, as a source of its own.

        None where they are in no function: code outside of functions may use any name of the file.
        """
        nodes = self._nodes.at(last - self.first + 1)
        functions = (node for node in nodes if isinstance(node, NamedFunction))
        outer = next((function for function in functions if self.span(function).line < first), None)
        if outer is None:
            return None
        start, end = lines_of_statement(self.outermost(outer))
        return parse("".join(self._lines[start - 1 : end]), self.file, self.first + start - 1)

    def outermost(self, node: ast.AST) -> ast.AST:
        """Return the top-level statement around a node."""
        ancestors = list(self.ancestors(node))
        return ancestors[-2] if len(ancestors) > 1 else node

    def block(self, statement: ast.AST) -> list[ast.stmt]:
        """Return the list of statements that contains a statement; an empty list for what no list contains."""
        parent = self.parent(statement)
        blocks = (getattr(parent, name, None) for name in ("body", "orelse", "finalbody"))
        return next((block for block in blocks if isinstance(block, list) and statement in block), [])

    def ancestors(self, node: ast.AST | None) -> Iterator[ast.AST]:
        """Yield the node itself, then each node around it, out to the module."""
        while node is not None:
            yield node
            node = self.parent(node)

    def up_to(self, node: ast.AST, top: ast.AST) -> Iterator[ast.AST]:
        """Yield the node itself, then each node around it, up to `top`, which is left out."""
        return takewhile(lambda outer: outer is not top, self.ancestors(node))

    def statement(self, node: ast.AST | None) -> ast.stmt:
        """Return the innermost statement around a node; NO_CODE around none."""
        return self.nearest(ast.stmt, node) or NO_CODE

    def nearest(self, kind: type[N], node: ast.AST | None) -> N | None:
        """Return the innermost node of a kind among a node and those around it."""
        return next((outer for outer in self.ancestors(node) if isinstance(outer, kind)), None)

    def function(self, node: ast.AST) -> FunctionNode | None:
        """Return the innermost function around a node; of a function the one around it."""
        return next((outer for outer in list(self.ancestors(node))[1:] if isinstance(outer, FunctionNode)), None)

    def function_at(self, line: int) -> NamedFunction | None:
        """Return the function that begins at a line of this text, its decorators included."""
        return next((function for function in self._functions_at(line) if isinstance(function, NamedFunction)), None)

    def function_of_code(self, code: CodeType) -> FunctionNode | None:
        """Return the function that a code object runs; None for a file, a cell or a class."""
        return self.function_named_at(code.co_firstlineno, code.co_name)

    def function_named_at(self, line: int, name: str) -> FunctionNode | None:
        """Return the function of a name (or the `<lambda>`) that begins at a line of the file, decorators included."""
        functions = self._functions_at(line - self.first + 1)
        return next((function for function in functions if getattr(function, "name", "<lambda>") == name), None)

    def _functions_at(self, line: int) -> Iterator[FunctionNode]:
        """Yield the functions that begin at a line of this text, with their decorators."""
        near = (outer for node in self._nodes.at(line) for outer in (node, self.parent(node)))
        return (node for node in near if isinstance(node, FunctionNode) and lines_of_statement(node)[0] == line)

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
        lines = [line_text.encode() for line_text in self._lines[line - 1 : end_line]]
        lines[-1] = lines[-1][:end_column]
        lines[0] = lines[0][column:]
        return b"".join(lines).decode()

    def line(self, number: int) -> str:
        """Return a line of the file, its indent included; empty when it is not in this source."""
        index = number - self.first
        return " " * self.indent + self._lines[index].rstrip("\r\n") if 0 <= index < len(self._lines) else ""

    def node_at(self, span: Span) -> ast.AST:
        """Return the expression or statement of a span, else the innermost one around it, else NO_CODE.

        Without columns: the statement that begins at the line, else the innermost one around it.
        """
        on_line: list[_Spot] = [(self.span(node), node) for node in self._nodes.at(span.line - self.first + 1)]
        if span.column < 0:
            statements = [(place, node) for place, node in on_line if isinstance(node, ast.stmt)]
            _, statement = min(
                statements, key=lambda at: (at[0].line != span.line, at[0].end_line - at[0].line), default=_NO_SPOT
            )
            return statement
        around = [(place, node) for place, node in on_line if place[:2] <= span[:2] and span[2:] <= place[2:]]
        return max(around, key=_smallness, default=_NO_SPOT)[1]


NO_SOURCE: Final = Source("", "", ast.Module([], []))
"""The source of a file that has none."""


def parameters(body: ast.AST, *, starred: bool = False) -> list[str]:
    """Return the names of a function's parameters, positional first; `starred`: those of `*args` and `**words` too."""
    if not isinstance(body, FunctionNode):
        return []
    signature = body.args
    rest = [star for star in (signature.vararg, signature.kwarg) if star is not None] if starred else []
    return [parameter.arg for parameter in (*signature.posonlyargs, *signature.args, *signature.kwonlyargs, *rest)]


def defaults(function: ast.AST | None) -> Iterator[tuple[str, ast.expr]]:
    """Yield the name and the default's code of each parameter with a default: `bias` and `True` of `bias=True`."""
    if isinstance(function, FunctionNode):
        args = function.args
        positional = zip(reversed([*args.posonlyargs, *args.args]), reversed(args.defaults), strict=False)
        by_keyword = zip(args.kwonlyargs, args.kw_defaults, strict=True)
        yield from ((parameter.arg, value) for parameter, value in (*positional, *by_keyword) if value is not None)


def own_name(source: Source, node: ast.AST) -> str:
    """Return the name by which the method around a node knows its object: `self`, or whatever it is called.

    Of a package's file only the function is kept; one that is indented is taken for a method.
    """
    classes = (ast.ClassDef, ast.Module) if source.indent else (ast.ClassDef,)
    members = (outer for outer in source.ancestors(node) if isinstance(source.parent(outer), classes))
    method = next((outer for outer in members if isinstance(outer, FunctionNode)), None)
    is_static = any(variable(decorator) == "staticmethod" for decorator in getattr(method, "decorator_list", ()))
    return "" if method is None or is_static else next(iter(parameters(method)), "")


def kept_with_source(find: Callable[Concatenate[Source, P], T]) -> Callable[Concatenate[Source, P], T]:
    """Cache a function's results on its source, for as long as that is kept."""

    @wraps(find)
    def cached(source: Source, /, *args: P.args, **words: P.kwargs) -> T:
        key = find, *args
        if key not in source.kept:
            source.kept[key] = find(source, *args, **words)
        result: T = source.kept[key]
        return result

    return cached


_Spot = tuple[Span, ast.AST]
_NO_SPOT: Final[_Spot] = Span(0, 0, 0, 0), NO_CODE


def _smallness(spot: _Spot) -> tuple[int, int, int, int, bool]:
    span, node = spot
    return span.line, span.column, -span.end_line, -span.end_column, isinstance(node, ast.expr)


def lines_of_statement(node: ast.AST) -> tuple[int, int]:
    """Return the first and the last line of a statement, or a lambda, with its decorators."""
    lines = [getattr(part, "lineno", 1) for part in (node, *getattr(node, "decorator_list", ()))]
    return min(lines), getattr(node, "end_lineno", None) or max(lines)


class _Nodes:
    """Nodes of a line, and what is around a node: of a long file only statements that were asked for are walked."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        self._starts = [lines_of_statement(statement)[0] for statement in tree.body]
        self._parents: dict[ast.AST, ast.AST] = dict.fromkeys(tree.body, tree)
        self._on_line: dict[int, list[ast.expr | ast.stmt]] = defaultdict(list)
        self._walked: set[int] = set()

    def at(self, line: int) -> list[ast.expr | ast.stmt]:
        """Return the expressions and statements that a line of the text has a part of."""
        start, stop = bisect_left(self._starts, line), bisect_right(self._starts, line)
        self._walk_statements(range(max(start - 1, 0), stop))  # the one that begins above may reach the line
        return self._on_line.get(line, [])

    def parent(self, node: ast.AST) -> ast.AST | None:
        if node is not self._tree and node not in self._parents:
            self.at(getattr(node, "lineno", 0))
            if node not in self._parents:  # a node such as `ast.arguments` has no line of its own
                self._walk_statements(range(len(self._starts)))
        return self._parents.get(node)

    def _walk_statements(self, indexes: range) -> None:
        """Note the parents and the lines of all nodes in these statements of the tree, once each."""
        for index in [index for index in indexes if index not in self._walked]:
            self._walked.add(index)
            for node in ast.walk(self._tree.body[index]):
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
            _kept[key] = _parse_dedented(text, file, first)
            size = sum(len(source_text) for source_text, _, _ in _kept)
            while size > MOST_TEXT and len(_kept) > 1:
                size -= len(_kept.popitem(last=False)[0][0])  # the least recently used
        _kept.move_to_end(key)
        return _kept[key]


def _parse_dedented(text: str, file: str, first: int) -> Source | None:
    dedented = textwrap.dedent(text) if text[:1] in (" ", "\t") else text
    indent = len(text) - len(text.lstrip(" \t")) if dedented is not text else 0
    try:
        return Source(file, dedented, ast.parse(dedented), first, indent)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def read(file: str) -> Source:
    """Parse a file or a cell, by the name that its code objects carry; NO_SOURCE when nobody has it."""
    text = text_of(file)
    return (parse(text, file) if text else None) or NO_SOURCE


def text_of(file: str) -> str:
    """Return the text of a file or a cell; empty where nobody has it."""
    if (saved := saved_file(file)) is not None:
        return saved.text
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
    index = _index_of_condition(code.co_code, instruction // 2)
    if not 0 <= index < len(positions):
        return Span(code.co_firstlineno, -1, -1, -1)
    line, end_line, column, end_column = positions[index]
    if line is None or column is None or end_line is None or end_column is None:
        return Span(line or code.co_firstlineno, -1, end_line or -1, -1)
    return Span(line, column, end_line, end_column)


def _index_of_condition(instructions: bytes, index: int) -> int:
    """Return the index of a jump's condition: Python places all jumps of `a == 1 and b.any()` at the first part."""
    if not 0 <= 2 * index < len(instructions) or not opname[instructions[2 * index]].startswith(_TESTS):
        return index
    before = range(index - 1, -1, -1)
    return next((at for at in before if not opname[instructions[2 * at]].startswith((*_TESTS, "COPY"))), index)


_TESTS: Final = ("POP_JUMP", "JUMP_IF", "TO_BOOL", "EXTENDED_ARG", "CACHE")
