"""Positions of values in JSON text, so that one value is replaced and every other character stays."""

import json
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_DECODER: Final = json.JSONDecoder()


class JsonSpan(NamedTuple):
    begin: int
    end: int


def whole(text: str) -> JsonSpan:
    """Return the span of the text's one value; raises ValueError if it is no JSON."""
    begin = _skip(text, 0)
    return JsonSpan(begin, _DECODER.raw_decode(text, begin)[1])


def members(text: str, value: JsonSpan) -> dict[str, JsonSpan]:
    """Return the values of an object by key; nothing of a value that is none."""
    found: dict[str, JsonSpan] = {}
    at = _first(text, value, "{")
    while at is not None:
        key, at = _DECODER.raw_decode(text, at)
        begin = _skip(text, _skip(text, at) + 1)
        found[key] = JsonSpan(begin, _DECODER.raw_decode(text, begin)[1])
        at = _next(text, found[key].end)
    return found


def items(text: str, value: JsonSpan) -> Iterator[JsonSpan]:
    """Yield the values of an array; nothing of a value that is none."""
    at = _first(text, value, "[")
    while at is not None:
        item = JsonSpan(at, _DECODER.raw_decode(text, at)[1])
        yield item
        at = _next(text, item.end)


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _first(text: str, value: JsonSpan, opening: str) -> int | None:
    at = _skip(text, value.begin + 1)
    return None if text[value.begin] != opening or text[at] in "]}" else at


def _next(text: str, end: int) -> int | None:
    at = _skip(text, end)
    return _skip(text, at + 1) if text[at] == "," else None
