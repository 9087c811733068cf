"""The check of messages between a page and the kernel: messages.json lists every kind of message with its fields.

Python and TypeScript read the one list, check each message that they receive, and refuse the rest with one log line.
The sidebar's messages go `to_kernel` and `to_panel`, those of LiveView `to_view` and `from_view`. A field is

    flag     true or false                        count    a whole number from 0 to 2**53
    number   finite                               text     at most 100,000 characters
    long     text of any length                   trace    an object, which the trace format checks
    a|b      one of these texts                   Name     an object of this shape
    [x]      a list of x                          {x}      an object whose values are x
    name?    may be missing
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

from devtrace.runtime.tables import json_of

Direction = Literal["to_kernel", "to_panel", "to_view", "from_view"]

LONGEST_TEXT: Final = 100_000
LARGEST: Final = 2**53
SPEC: Final[dict[str, Any]] = json_of("notebook/panel/messages.json")


def refusal(direction: Direction, data: object) -> str | None:
    """Return in one line why a message is refused, None for one that fits."""
    kinds: dict[str, Any] = SPEC[direction]
    kind = data.get("kind") if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(kind, str) or kind not in kinds:
        return f"a message of an unknown kind: {_short(kind if isinstance(data, dict) else data)}"
    return _fault_of_fields(kind, {key: value for key, value in data.items() if key != "kind"}, kinds[kind])


def is_foreign_hello(data: object) -> bool:
    """Return whether this is a hello of another protocol, whose other fields may be anything."""
    if not isinstance(data, dict) or data.get("kind") != "hello":
        return False
    protocol = data.get("protocol")
    return _fits(protocol, "count") and protocol != SPEC["protocol"]


def _fault_of_fields(where: str, data: Mapping[Any, Any], fields: Mapping[str, str]) -> str | None:
    known = {name.removesuffix("?") for name in fields}
    if unknown := [key for key in data if key not in known]:
        return f"{where} has an unknown field {_short(unknown[0])}"
    for name, type in fields.items():
        key = name.removesuffix("?")
        if key in data:
            if fault := _fault_of(f"{where}.{key}", data[key], type):
                return fault
        elif key == name:
            return f"{where} has no {key}"
    return None


def _fault_of(where: str, value: object, type: str) -> str | None:
    if type.startswith("["):
        if not isinstance(value, list):
            return f"{where} is {_short(value)}, expected a list"
        return _first_fault(f"{where}[]", value, type[1:-1])
    if (type.startswith("{") or type[0].isupper()) and not isinstance(value, dict):
        return f"{where} is {_short(value)}, expected an object"
    if isinstance(value, dict) and type.startswith("{"):
        return _first_fault(f"{where}{{}}", value.values(), type[1:-1])
    if isinstance(value, dict) and type[0].isupper():
        return _fault_of_fields(where, value, SPEC["shapes"][type])
    return None if _fits(value, type) else f"{where} is {_short(value)}, expected {type}"


def _first_fault(where: str, values: Iterable[object], type: str) -> str | None:
    return next((fault for value in values if (fault := _fault_of(where, value, type))), None)


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
