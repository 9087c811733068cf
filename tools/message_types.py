"""The messages of messages.json as TypeScript types.

`make golden` writes the file; a test holds the two equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from devtrace.notebook.panel.messages import SPEC

FILE: Final = Path(__file__).parents[1] / "labextension" / "src" / "model" / "message-types.ts"

_HEAD: Final = """/**
 * Made from messages.json by tools/message_types.py: not edited by hand.
 */
import type { JsonObject } from './findings';
"""
_PLAIN: Final = {
    "flag": "boolean",
    "count": "number",
    "number": "number",
    "text": "string",
    "long": "string",
    "trace": "JsonObject",
}


def text() -> str:
    """Return the whole file."""
    shapes = [_interface(name, fields) for name, fields in SPEC["shapes"].items()]
    directions = [
        _interface(name.title().replace("_", ""), kinds)
        for name, kinds in SPEC.items()
        if name not in ("protocol", "shapes")
    ]
    return "\n".join([_HEAD, *shapes, *directions])


def _interface(name: str, fields: Mapping[str, str | Mapping[str, str]]) -> str:
    return "\n".join([f"export interface I{name} {{", *_fields(fields, "  "), "}\n"])


def _fields(fields: Mapping[str, str | Mapping[str, str]], indent: str) -> Iterator[str]:
    for name, type in fields.items():
        if isinstance(type, str):
            yield f"{indent}readonly {name}: {_type(type)};"
        elif type:
            yield f"{indent}readonly {name}: {{"
            yield from _fields(type, f"{indent}  ")
            yield f"{indent}}};"
        else:
            yield f"{indent}readonly {name}: object;"


def _type(type: str) -> str:
    if type.startswith("["):
        item = _type(type[1:-1])
        return f"readonly {item}[]" if item.isidentifier() else f"ReadonlyArray<{item}>"
    if type.startswith("{"):
        return f"Readonly<Record<string, {_type(type[1:-1])}>>"
    if "|" in type:
        return " | ".join(f"'{choice}'" for choice in type.split("|"))
    return f"I{type}" if type[0].isupper() else _PLAIN[type]
