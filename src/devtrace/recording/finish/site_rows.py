"""From site ids to rows of the trace: files, spans, text, cells, packages, and the sources around them."""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterable
from functools import lru_cache

from devtrace.recording.columns import sites
from devtrace.recording.columns.sites import LIBRARY, Spot, files
from devtrace.source.parsing import Span, read, span_at
from devtrace.source.user_code import package_of
from devtrace.trace.builder import TraceBuilder

LONGEST_TEXT = 400
_TERMINAL_CELL = re.compile(r"<ipython-input-(\d+)-")


def add_sites(builder: TraceBuilder, used: Iterable[int]) -> dict[int, int]:
    """Rows for the given sites and their callers, and for the sources they lie in: site id -> row."""
    rows: dict[int, int] = {sites.NOWHERE: -1}
    for site in sorted(set(used) - {sites.NOWHERE}):
        _add(builder, site, rows)
    return rows


def _add(builder: TraceBuilder, site: int, rows: dict[int, int]) -> int:
    if site not in rows:
        spot = sites.spot(site)
        caller = _add(builder, spot.caller, rows)
        span = span_at(spot.code, spot.instruction)
        count, cell_id = _cell(spot)
        above = _lines_above(spot)
        fields = {
            "file": spot.code.co_filename,
            "line": span.line + above,
            "column": span.column,
            "end_line": span.end_line + above if span.end_line >= 0 else -1,
            "end_column": span.end_column,
            "function": "" if spot.code.co_name == "<module>" else spot.code.co_qualname,
            "text": _text(spot, span),
            "cell": count,
            "cell_id": cell_id,
            "package": package_of(spot.code.co_filename) if files[spot.code.co_filename] == LIBRARY else "",
            "caller": caller,
        }
        # Python rewrites a hot call to other instructions: one expression, several sites.
        rows[site] = builder.intern("sites", tuple(fields.values()), **fields)
        _add_source(builder, spot, count, cell_id)
    return rows[site]


def _cell(spot: Spot) -> tuple[int, str]:
    if spot.cell is not None:
        return spot.cell.count, spot.cell.cell_id
    terminal = _TERMINAL_CELL.match(spot.code.co_filename)
    return (int(terminal[1]) if terminal else -1), ""


def _lines_above(spot: Spot) -> int:
    """How many lines of its cell stand above the code: blank ones, or the %%magics that ran it."""
    return spot.cell.first - 1 if spot.cell is not None else 0


def _lines(spot: Spot) -> list[str]:
    if spot.cell is not None:
        return spot.cell.source.splitlines(keepends=True)
    return linecache.getlines(spot.code.co_filename)


def _text(spot: Spot, span: Span) -> str:
    """The source of the span; the whole line where there are no columns."""
    lines = _lines(spot)[span.line - 1 : max(span.end_line, span.line)]
    if not lines:
        return ""
    if span.column < 0:
        return lines[0].strip()[:LONGEST_TEXT]
    raw = [line.encode() for line in lines]  # columns count bytes
    raw[-1] = raw[-1][: span.end_column]
    raw[0] = raw[0][span.column :]
    return b"".join(raw).decode(errors="replace")[:LONGEST_TEXT]


def _add_source(builder: TraceBuilder, spot: Spot, count: int, cell_id: str) -> None:
    """A cell or a file of the user's whole; of a package's file the function."""
    file = spot.code.co_filename
    line = 1 + _lines_above(spot)
    text = "".join(_lines(spot))
    if files[file] == LIBRARY:
        text, line = _function(file, spot.code.co_firstlineno)
    if text:
        builder.intern(
            "sources", (file, line, count, text), file=file, text=text, line=line, cell=count, cell_id=cell_id
        )


@lru_cache(maxsize=1024)
def _function(file: str, first: int) -> tuple[str, int]:
    """The text of the function that begins at a line (decorators included), and that line."""
    source = read(file)
    if source is None:
        return "", first
    function = source.function_at(first)
    if function is not None:
        return "".join(linecache.getlines(file)[first - 1 : function.end_lineno]), first
    return linecache.getline(file, first), first
