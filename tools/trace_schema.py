"""devtrace.schema.json, made from the tables of `columns.py`: what a trace file is, for who reads it without us.

`make golden` writes the file; a test holds the two equal.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from devtrace.trace.columns import OPTIONAL_COLUMNS, OPTIONAL_TABLES, TABLES, Column

FILE: Final = Path(__file__).parents[1] / "src" / "devtrace" / "devtrace.schema.json"

_ID: Final = {"type": "integer", "minimum": -1}
_TEXT: Final = {"type": "string"}
_COUNT: Final = {"type": "integer", "minimum": 0}
_INTS: Final = {
    "oneOf": [
        {"type": "array", "items": {"type": "integer"}},
        {
            "type": "object",
            "required": ["length", "width", "lag", "data"],
            "properties": {
                "length": _COUNT,
                "width": {"enum": [1, 2, 4, 8]},
                "lag": _COUNT,
                "data": {"type": "string", "contentEncoding": "base64"},
            },
        },
    ]
}
_LISTS: Final = {
    "type": "object",
    "required": ["offsets", "flat"],
    "properties": {"offsets": {"$ref": "#/$defs/ints"}, "flat": {"$ref": "#/$defs/ints"}},
}
_CULPRIT: Final = {
    "name": _TEXT,
    "names": {"type": "array", "items": _TEXT},
    "device": _TEXT,
    "shape": {"type": "array", "items": {"type": "integer"}},
    "dtype": _TEXT,
    "born": _ID,
    "moved": _ID,
    "chain": {"type": "array", "items": _ID},
    "certainty": {"enum": ["seen", "inferred"]},
}
_CURVE: Final = {
    "device": _TEXT,
    "limit": _COUNT,
    "exact": {"type": "boolean"},
    "parts": {"type": "array", "items": {"type": "array", "items": _TEXT, "minItems": 2, "maxItems": 2}},
    "ops": {"$ref": "#/$defs/ints"},
    "bytes": {"$ref": "#/$defs/ints"},
}
_EDIT: Final = {"file": _TEXT, "cell": _ID, "line": _COUNT, "before": _TEXT, "after": _TEXT}
_LINE: Final = {"label": _TEXT, "site": _ID, "remark": _TEXT}
_HOLDER: Final = {"name": _TEXT, "kind": _TEXT, "bytes": _COUNT, "born": _ID, "site": _ID, "count": _COUNT}
_FINDING: Final = {
    "rule": _TEXT,
    "severity": {"enum": ["error", "warning", "note"]},
    "cause": _TEXT,
    "devices": {"type": "array", "items": _TEXT},
    "site": _ID,
    "op": _ID,
    "culprit": {"oneOf": [{"type": "null"}, {"$ref": "#/$defs/culprit"}]},
    "count": _COUNT,
    "bytes": _COUNT,
    "message": _TEXT,
    "help": _TEXT,
    "edits": {"type": "array", "items": {"$ref": "#/$defs/edit"}},
}


def schema() -> dict[str, Any]:
    """Return the JSON Schema of format version 1."""
    tables = {name: _table(name, columns) for name, columns in TABLES.items()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "devtrace trace, version 1",
        **_object(
            {
                "format": {"const": "devtrace"},
                "version": {"const": 1},
                "producer": _TEXT,
                "title": _TEXT,
                "recorded": _TEXT,
                "strings": {"type": "array", "items": _TEXT},
                **{name: table for name, table in tables.items() if name not in OPTIONAL_TABLES},
                "findings": {"oneOf": [{"type": "null"}, {"type": "array", "items": {"$ref": "#/$defs/finding"}}]},
                "truncated": _COUNT,
                "notes": {"type": "array", "items": _TEXT},
            },
            {name: tables[name] for name in OPTIONAL_TABLES}
            | {"memory": {"type": "array", "items": {"$ref": "#/$defs/curve"}}}
            | {"language": _TEXT, "outcome": _TEXT, "closing": _TEXT, "all_clear": {"type": "boolean"}}
            | {"case": {"$ref": "#/$defs/case"}},
        ),
        "$defs": {
            "ints": _INTS,
            "lists": _LISTS,
            "curve": _object(_CURVE),
            "case": _object({"version": {"const": 1}, "data": {"type": "string", "contentEncoding": "base64"}}),
            "culprit": _object(_CULPRIT),
            "edit": _object(_EDIT, {"grade": {"enum": ["proven", "tried", "not tried", "safe"]}}),
            "line": _object(_LINE),
            "holder": _object(_HOLDER),
            "finding": _object(
                _FINDING,
                {f"{name}s": {"type": "array", "items": {"$ref": f"#/$defs/{name}"}} for name in ("line", "holder")}
                | {"proof": {"oneOf": [{"type": "null"}, _TEXT]}},
            ),
        },
    }


def text() -> str:
    """Return the file's content."""
    return json.dumps(schema(), indent=1) + "\n"


def _table(name: str, columns: tuple[Column, ...]) -> dict[str, Any]:
    described = {column.name: _column(column) for column in columns}
    optional = {each: described.pop(each) for table, each in OPTIONAL_COLUMNS if table == name}
    return _object(described, optional)


def _column(column: Column) -> dict[str, str]:
    return {"$ref": "#/$defs/lists" if column.is_list else "#/$defs/ints"}


def _object(required: dict[str, Any], optional: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
    return {"type": "object", "required": list(required), "properties": {**required, **optional}}
