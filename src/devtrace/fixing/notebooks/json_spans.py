"""Positions of values in JSON text, so that one value is replaced and every other character stays."""

import json
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_DECODER: Final = json.JSONDecoder()


class Span(NamedTuple):
    begin: int
    end: int


def whole(text: str) -> Span:
    """Return the span of the text's one value; raises ValueError if it is no JSON."""
    begin = _skip(text, 0)
    return Span(begin, _DECODER.raw_decode(text, begin)[1])


def members(text: str, value: Span) -> dict[str, Span]:
    """Return the values of an object by key; nothing of a value that is none."""
    found: dict[str, Span] = {}
    at = _first(text, value, "{")
    while at is not None:
        key, at = _DECODER.raw_decode(text, at)
        begin = _skip(text, _skip(text, at) + 1)
        found[key] = Span(begin, _DECODER.raw_decode(text, begin)[1])
        at = _next(text, found[key].end)
    return found


def items(text: str, value: Span) -> Iterator[Span]:
    """Yield the values of an array; nothing of a value that is none."""
    at = _first(text, value, "[")
    while at is not None:
        item = Span(at, _DECODER.raw_decode(text, at)[1])
        yield item
        at = _next(text, item.end)


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _first(text: str, value: Span, opening: str) -> int | None:
    at = _skip(text, value.begin + 1)
    return None if text[value.begin] != opening or text[at] in "]}" else at


def _next(text: str, end: int) -> int | None:
    at = _skip(text, end)
    return _skip(text, at + 1) if text[at] == "," else None
