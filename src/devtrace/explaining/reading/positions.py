"""Sites of expressions that are read: a file is compiled, never run, and its instructions have the positions."""

import ast
from collections.abc import Iterator
from types import CodeType

from devtrace.recording.columns import sites
from devtrace.source.parsing import Source, Span, kept_with_source

_Spots = dict[Span | int, tuple[CodeType, int]]


def site_of(node: ast.AST, source: Source, caller: int) -> int:
    """Return the site of an expression, else of its line; NOWHERE where no instruction is of it."""
    spots, span = _spots(source), source.span(node)
    found = spots.get(span) or spots.get(span.line)
    if found is None:
        return sites.NOWHERE
    is_library = sites.files[source.file] == sites.LIBRARY
    return sites.intern(*found, caller if is_library else sites.NOWHERE)


@kept_with_source
def _spots(source: Source) -> _Spots:
    """Return the instructions of a source by their span; of a line, by its number, the first."""
    found: _Spots = {}
    try:
        whole = compile(source.tree, source.file, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return found
    for code in _all(whole):
        for index, (line, end_line, column, end_column) in enumerate(code.co_positions()):
            if line is None or end_line is None or column is None or end_column is None:
                continue
            found[Span(line, column, end_line, end_column)] = code, index * 2
            found.setdefault(line, (code, index * 2))
    return found


def _all(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _all(constant)
