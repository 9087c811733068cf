"""Makes rows of sites: files, spans, text, cells, packages, and the sources around them."""

import linecache
import re
from collections.abc import Iterable
from functools import lru_cache

from devtrace.recording.columns import sites
from devtrace.recording.columns.process_history import CodePosition
from devtrace.recording.columns.sites import LIBRARY, files
from devtrace.source.parsing import NO_SOURCE, Span, lines_of, read, span_at
from devtrace.source.user_code import package_of
from devtrace.trace.builder import TraceBuilder

LONGEST_TEXT = 400
_TERMINAL_CELL = re.compile(r"<ipython-input-(\d+)-")


def add_sites(builder: TraceBuilder, used: Iterable[int]) -> dict[int, int]:
    """Add rows for sites and their callers, and for the sources around them; return the row of each site."""
    rows: dict[int, int] = {sites.NOWHERE: -1}
    for site in sorted(set(used) - {sites.NOWHERE}):
        _row_of_site(builder, site, rows)
    return rows


def _row_of_site(builder: TraceBuilder, site: int, rows: dict[int, int]) -> int:
    if site not in rows:
        position = sites.position(site)
        caller = _row_of_site(builder, position.caller, rows)
        span = span_at(position.code, position.instruction)
        count, cell_id = _cell_of(position)
        above = _lines_above(position)
        fields = {
            "file": position.code.co_filename,
            "line": span.line + above,
            "column": span.column,
            "end_line": span.end_line + above if span.end_line >= 0 else -1,
            "end_column": span.end_column,
            "function": "" if position.code.co_name == "<module>" else position.code.co_qualname,
            "text": _text_of_span(position, span),
            "cell": count,
            "cell_id": cell_id,
            "package": package_of(position.code.co_filename) if files[position.code.co_filename] == LIBRARY else "",
            "caller": caller,
        }
        # Python rewrites a hot call to other instructions: one expression, several sites.
        rows[site] = builder.intern("sites", tuple(fields.values()), **fields)
        _add_source(builder, position, count, cell_id)
    return rows[site]


def _cell_of(position: CodePosition) -> tuple[int, str]:
    if position.cell is not None:
        return sites.number_of(position.cell), position.cell.cell_id
    terminal = _TERMINAL_CELL.match(position.code.co_filename)
    return (int(terminal[1]) if terminal else -1), ""


def _lines_above(position: CodePosition) -> int:
    """Count the lines of the cell above the code: blank ones, or the %%magics that ran it."""
    return position.cell.first - 1 if position.cell is not None else 0


def _source_lines(position: CodePosition) -> list[str]:
    if position.cell is not None:
        return lines_of(position.cell.text)
    return linecache.getlines(position.code.co_filename)


def _text_of_span(position: CodePosition, span: Span) -> str:
    """Return the source of the span; the whole line where there are no columns."""
    lines = _source_lines(position)[span.line - 1 : max(span.end_line, span.line)]
    if not lines or (position.cell is None and not _is_where_it_says(position)):
        return ""
    if span.column < 0:
        return lines[0].strip()[:LONGEST_TEXT]
    raw = [line.encode() for line in lines]  # columns count bytes
    raw[-1] = raw[-1][: span.end_column]
    raw[0] = raw[0][span.column :]
    return b"".join(raw).decode(errors="replace")[:LONGEST_TEXT]


def _is_where_it_says(position: CodePosition) -> bool:
    """Return whether a function begins at its line of the file: `autoreload` compiles a changed one by itself."""
    name, text = position.code.co_name, linecache.getline(position.code.co_filename, position.code.co_firstlineno)
    return "<" in name or re.match(rf"\s*@|.*\b(def|class)\s+{name}\b", text) is not None


def _add_source(builder: TraceBuilder, position: CodePosition, count: int, cell_id: str) -> None:
    """Add a cell or a file of the user's whole; of a package's file the function."""
    file = position.code.co_filename
    line = 1 + _lines_above(position)
    text = "".join(_source_lines(position))
    if files[file] == LIBRARY:
        line = position.code.co_firstlineno
        text = _text_of_function(file, line)
    if text:
        builder.intern(
            "sources", (file, line, count, text), file=file, text=text, line=line, cell=count, cell_id=cell_id
        )


@lru_cache(maxsize=1024)
def _text_of_function(file: str, line: int) -> str:
    """Return the text of the function that begins at a line (decorators included), or that line."""
    source = read(file)
    if source is NO_SOURCE:
        return ""
    function = source.function_at(line)
    return "".join(linecache.getlines(file)[line - 1 : function.end_lineno if function else line])
