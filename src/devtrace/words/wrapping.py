"""Lines of a limited width, in which code and short remarks stay whole, and Chinese breaks between characters.

A Chinese character takes two columns. A full stop or a comma never begins a line.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Final

_REMARK: Final = r"[(（][^()（）`]{1,9}[)）][^\s`\u2e80-\uffef]*"
_PIECE: Final = re.compile(rf"{_REMARK}|(?:`[^`]*`)?[^\s`\u2e80-\uffef]+|`[^`]*`|\s+|\S")
_CLOSING: Final = frozenset("，。；：、）！？」”")


def columns(text: str) -> int:
    """Return how many columns a terminal needs for a text."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def pad(text: str, width: int) -> str:
    """Fill a text with spaces up to a width in columns."""
    return text + " " * max(width - columns(text), 0)


def cut(text: str, width: int) -> str:
    """Return as much of a text as fits a width in columns, with `…` for the rest."""
    shown = text[: width + 1]  # a character takes a column or two: the rest of a megabyte need not be measured
    if columns(shown) <= width:
        return text
    while shown and columns(shown) > max(width - 1, 0):
        shown = shown[:-1]
    return f"{shown}…"


def table(rows: Iterable[tuple[str, str]], width: int = 11) -> str:
    """Return a line a row, the first column filled up to a width."""
    return "\n".join(pad(label, width) + value for label, value in rows)


def wrap(text: str, width: int, first: str = "", rest: str = "") -> list[str]:
    """Break text into lines of at most `width` columns, the first and the others with their own indent."""
    lines: list[str] = []
    line = ""
    for space, piece in _pieces(text, width - columns(rest)):
        indent = rest if lines else first
        if line and columns(indent + line + space + piece) > width:
            lines.append(indent + line)
            line = ""
        line += space + piece if line else piece
    return [*lines, (rest if lines else first) + line]


def _pieces(text: str, width: int) -> Iterator[tuple[str, str]]:
    """Yield what is never broken, each with the space before it: a word, code, a remark, a character with its comma."""
    space, unbroken = "", ""
    for match in _PIECE.finditer(text):
        piece = match[0]
        if unbroken and (piece.isspace() or piece[0] not in _CLOSING):
            yield from _cut_to_fit(space, unbroken, width)
            space, unbroken = "", ""
        if piece.isspace():
            space = " "
        else:
            unbroken += piece
    if unbroken:
        yield from _cut_to_fit(space, unbroken, width)


def _cut_to_fit(space: str, piece: str, width: int) -> Iterator[tuple[str, str]]:
    """Cut code that is longer than a whole line at its spaces; a word without any stays whole."""
    parts = [piece] if columns(piece) <= width else piece.split()
    for index, part in enumerate(parts):
        yield (" " if index else space), part
