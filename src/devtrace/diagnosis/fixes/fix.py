"""What every mend of a mismatch is made of: the fix itself, source to edit, frames that still stand."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.evidence.access_paths import AccessPath
from devtrace.diagnosis.evidence.case import Case
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.trace_queries import SourceNode
from devtrace.diagnosis.findings import Edit


@dataclass(frozen=True)
class Fix:
    """What to do, in words, and as edits."""

    help: str
    edits: tuple[Edit, ...] = ()


def made(help: str, *edits: Edit | None) -> Fix | None:
    """A fix, if all its edits could be made."""
    whole = tuple(edit for edit in edits if edit is not None)
    return Fix(help, whole) if whole and len(whole) == len(edits) else None


def code_at(case: Case, site: int) -> tuple[Code, SourceNode] | None:
    """The source at a site of the trace, if it is the user's to edit."""
    return None if case.queries.package(site) else text_at(case, site)


def text_at(case: Case, site: int) -> tuple[Code, SourceNode] | None:
    """The source at a site of the trace, to be read."""
    place, row = case.queries.source_node(site), case.queries.site(site)
    return (Code(place.source, row), place) if place is not None and row is not None else None


def standing(case: Case, site: int) -> FailingFrame | None:
    """The frame that is still running the function of a site; of a package's code only to be read."""
    row = case.queries.site(site)
    number = case.snapshot.frame_of(row) if row is not None else None
    return None if number is None else FailingFrame.reading(case.snapshot, number, case.expected_device)


def called(statement: ast.stmt) -> set[str]:
    return {called_name(node) for node in ast.walk(statement) if isinstance(node, ast.Call)} - {""}


def called_name(call: ast.Call) -> str:
    """`c` of `a.b.c(...)` and of `c(...)`."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def code_of(name: AccessPath) -> str | None:
    """A name as an expression that can be written: `model.encoder[0].down`."""
    text = ""
    for hold in name.holds:
        if hold.kind in ("closure", "state") and text:
            return None
        inner = hold.text.lstrip(".")
        text += f"[{inner}]" if text and hold.kind != "item" and inner.isdigit() else hold.text.lstrip(":")
    return text
