"""A trace as text, row by row: what goldens hold, what a reviewer reads, and what both languages must print alike."""

from __future__ import annotations

import json
from collections.abc import Iterator

from devtrace.trace.columns import TABLES, Column
from devtrace.trace.tables import TraceData


def dump(trace: TraceData) -> str:
    """Every table, row and field; text in JSON's ASCII form, so that nothing in it can pass for something else."""
    return "\n".join(_lines(trace)) + "\n"


def _lines(trace: TraceData) -> Iterator[str]:
    made = f"by {_quoted(trace.producer)} at {_quoted(trace.recorded)}"
    yield f"trace {_quoted(trace.title)} {made} truncated={trace.truncated}"
    yield from (f"note {_quoted(note)}" for note in trace.notes)
    for name, columns in TABLES.items():
        table = trace.table(name)
        yield f"{name} {len(table)}"
        for id in range(len(table)):
            fields = (f"{column.name}={_field(trace, name, column, id)}" for column in columns)
            yield f"  {id} {' '.join(fields)}"
    findings = trace.findings
    yield f"findings {'none' if findings is None else len(findings)}"
    yield from (f"  {at} {json.dumps(finding, sort_keys=True)}" for at, finding in enumerate(findings or ()))


def _field(trace: TraceData, table: str, column: Column, id: int) -> str:
    raw = trace.table(table).raw(column.name, id)
    if column.kind == "text":
        return _quoted(raw)
    return f"[{','.join(map(str, raw))}]" if column.is_list else str(raw)


def _quoted(text: str) -> str:
    return json.dumps(text)
