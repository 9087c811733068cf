"""Text from a trace, made fit to be read: names, source lines and messages may hold anything, and are never trusted.

Control characters, bidirectional overrides and lone surrogates are shown as escapes (`\\u202e`), so that a reader sees
all that is there. A text that is too long is cut, with its length. Numbers come with their unit.
"""

import re
from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby
from typing import Final

LONGEST: Final = 200
"""Characters of one name or line that a reader is shown: two lines of a terminal; the rest is in the trace."""
LONGEST_OP: Final = 40

_INVISIBLE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\uffff\ud800-\udfff]"
)
_MARIMO_CELL: Final = re.compile(r"__marimo__cell_(\w+)_\.py")
_UNITS: Final = ("B", "KB", "MB", "GB", "TB")


def escape_invisible(text: str, longest: int = LONGEST) -> str:
    """Replace invisible characters by escapes, and cut a long text."""
    shown = _INVISIBLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text[: longest + 1])
    return shown if len(text) <= longest else f"{shown[:longest]}… ({len(text):,} characters)"


def one_line(text: str) -> str:
    return " ".join(text.split())


def shorten(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(width - 1, 0)] + "…"


def safe_line(text: str, longest: int = LONGEST) -> str:
    """Put text from a trace on one line, fit to be read."""
    return escape_invisible(" ".join(text[: 8 * longest].split()), longest)


def file_label(file: str) -> str:
    """Return the last part of a path; a cell of marimo, which runs each as a file of its own, by marimo's id of it."""
    name = file[max(file.rfind("/"), file.rfind("\\")) + 1 :]
    cell = _MARIMO_CELL.fullmatch(name)
    return f"cell-{cell[1]}" if cell else name


def escape_markup(text: str, longest: int = LONGEST) -> str:
    """Escape text for html or svg, in an attribute or between tags."""
    return escape(escape_invisible(text, longest), quote=True)


def format_memory(size: int) -> str:
    """Write a size as torch's own error of memory does, in units of 1024."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size} B"


def format_bytes(count: int) -> str:
    """Format bytes: 0 B, 512 B, 1.5 KB, 38.6 MB."""
    value, unit = float(count), 0
    while value >= 999.5 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:.0f} {_UNITS[unit]}" if unit == 0 or value >= 99.95 else f"{value:.1f} {_UNITS[unit]}"


def format_time(nanoseconds: float) -> str:
    """Format a duration: 850 ns, 12.4 ms, 3 s, 2 min 05 s, 3 h 20 min."""
    for factor, unit in ((1, "ns"), (1e3, "µs"), (1e6, "ms")):
        if nanoseconds < 999.5 * factor:
            return f"{nanoseconds / factor:.3g} {unit}"
    seconds = nanoseconds / 1e9
    if seconds < 119.5:
        return f"{seconds:.3g} s"
    minutes = int(seconds // 60)
    return f"{minutes} min {int(seconds % 60):02d} s" if minutes < 120 else f"{minutes // 60} h {minutes % 60:02d} min"


def short_op_name(name: str) -> str:
    """Drop the namespace and the overload of an op: addmm for aten.addmm.default."""
    parts = name.split(".")
    return safe_line(parts[1] if len(parts) > 1 and parts[1] else name, LONGEST_OP)


def pluralize(count: int, one: str, many: str = "") -> str:
    """Count things: 1 op, 2 ops, 1,234 copies."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


MOST_RUNS: Final = 8


def in_short(ranks: Sequence[int]) -> str:
    """Write 0, 1, 2, 5 as "0–2, 5"; of many stretches the first."""
    runs = list(_runs(ranks))
    return ", ".join(runs if len(runs) <= MOST_RUNS else [*runs[: MOST_RUNS - 1], "…"])


def _runs(ranks: Sequence[int]) -> Iterator[str]:
    for _, run in groupby(enumerate(sorted(ranks)), key=lambda pair: pair[1] - pair[0]):
        numbers = [rank for _, rank in run]
        yield str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]}–{numbers[-1]}"
