"""What the sidebar and the kernel may say to each other: every kind of message and every field of it, in messages.json.

Both sides read the one list, check what they receive against it, and refuse the rest with one log line. A field is

    flag     true or false                        count    a whole number from 0 to 2**53
    number   finite                               text     at most 100,000 characters
    long     text of any length                   trace    an object, which the trace format checks
    a|b      one of these texts                   Name     an object of this shape
    [x]      a list of x                          name?    may be missing
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any, Final, Literal

Direction = Literal["to_kernel", "to_panel"]

LONGEST_TEXT: Final = 100_000
LARGEST: Final = 2**53


@cache
def spec() -> dict[str, Any]:
    """messages.json."""
    read: dict[str, Any] = json.loads(resources.files(__package__).joinpath("messages.json").read_text("utf-8"))
    return read


def refusal(direction: Direction, data: object) -> str | None:
    """Why a message is refused, in one line; None for one that is as it should be."""
    kinds: dict[str, Any] = spec()[direction]
    kind = data.get("kind") if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(kind, str) or kind not in kinds:
        return f"a message of an unknown kind: {_short(kind if isinstance(data, dict) else data)}"
    return _wrong_fields(kind, {key: value for key, value in data.items() if key != "kind"}, kinds[kind])


def speaks_otherwise(data: object) -> bool:
    """Whether this is the greeting of another protocol, of which only its kind and its number are sure. It is answered
    with our number, so that each side can say which of the two is older."""
    if not isinstance(data, dict) or data.get("kind") != "hello":
        return False
    protocol = data.get("protocol")
    return _fits(protocol, "count") and protocol != spec()["protocol"]


def _wrong_fields(where: str, data: Mapping[Any, Any], fields: Mapping[str, str]) -> str | None:
    known = {name.removesuffix("?") for name in fields}
    if unknown := [key for key in data if key not in known]:
        return f"{where} has an unknown field {_short(unknown[0])}"
    for name, type in fields.items():
        key = name.removesuffix("?")
        if key in data:
            if wrong := _wrong(f"{where}.{key}", data[key], type):
                return wrong
        elif key == name:
            return f"{where} has no {key}"
    return None


def _wrong(where: str, value: object, type: str) -> str | None:
    if type.startswith("["):
        if not isinstance(value, list):
            return f"{where} is {_short(value)}, expected a list"
        return next((wrong for item in value if (wrong := _wrong(f"{where}[]", item, type[1:-1]))), None)
    if type[:1].isupper():
        if not isinstance(value, dict):
            return f"{where} is {_short(value)}, expected an object"
        return _wrong_fields(where, value, spec()["shapes"][type])
    return None if _fits(value, type) else f"{where} is {_short(value)}, expected {type}"


def _fits(value: object, type: str) -> bool:
    if type == "flag":
        return isinstance(value, bool)
    if type == "count":
        return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST
    if type == "number":
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if type == "trace":
        return isinstance(value, dict)
    if "|" in type:
        return isinstance(value, str) and value in type.split("|")
    return isinstance(value, str) and (type == "long" or len(value) <= LONGEST_TEXT)


def _short(value: object) -> str:
    text = repr(value)[:200]
    return text if len(text) <= 60 else f"{text[:57]}..."
