"""device-mismatch: an op was given tensors of several devices and raised."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from devtrace.diagnosis.causes.verdicts import verdict
from devtrace.diagnosis.evidence import origins, untraced_cells
from devtrace.diagnosis.evidence.case import Case, Verdict
from devtrace.diagnosis.evidence.failure_snapshot import FailureSnapshot
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.mismatch import Mismatch, find_mismatch
from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.diagnosis.findings import Culprit, Finding, Site
from devtrace.diagnosis.fixes.strategies import fix
from devtrace.diagnosis.messages import message, taken_at
from devtrace.diagnosis.rules import generator_mismatch, host_conversion
from devtrace.source.safe_values import values
from devtrace.trace.tables import Failure

_SAYS_DEVICE: Final = re.compile(r"device|cuda|Input type \(|on cpu", re.IGNORECASE)
_IS_MIX: Final = re.compile(r"same device|at least two devices|numpy|generator", re.IGNORECASE)
LONGEST_CHAIN: Final = 8


def device_errors(queries: TraceQueries) -> Iterator[Finding]:
    """A finding for each error of the trace that is about devices."""
    snapshot = FailureSnapshot(queries)
    for error in queries.trace.errors:
        if not _SAYS_DEVICE.search(error.message):
            continue
        try:
            found = _explained(queries, snapshot, error.op.id, error.message)
        except Exception as fault:  # noqa: BLE001 (torch's own error is shown all the same)
            yield _unexplained(
                queries, error.op.id, error, f"devtrace failed to explain it ({type(fault).__name__}: {fault})."
            )
            continue
        if found is not None:
            yield found
        elif _IS_MIX.search(error.message):
            yield _unexplained(queries, error.op.id, error, "The trace does not tell which tensor it was.")


def _explained(queries: TraceQueries, snapshot: FailureSnapshot, op: int, text: str) -> Finding | None:
    for explain in (host_conversion.host_conversion, generator_mismatch.generator_mismatch, device_mismatch):
        found = explain(queries, snapshot, op, text)
        if found is not None:
            return found
    return None


def _unexplained(queries: TraceQueries, op: int, error: Failure, why: str) -> Finding:
    """torch's own words, where devtrace has none."""
    first = error.message.strip().splitlines()[0] if error.message.strip() else ""
    devices = dict.fromkeys(queries.device(row) for row in queries.inputs(op))
    return Finding(
        rule="device-mismatch",
        severity="error",
        cause="unknown",
        devices=tuple(devices),
        site=queries.site(queries.trace.ops.number("site", op)),
        op=op,
        message=f"{error.type}: {first}\n{why}",
        ops=(op,),
    )


def device_mismatch(queries: TraceQueries, snapshot: FailureSnapshot, op: int, text: str) -> Finding | None:
    odd = find_mismatch(queries, op)
    if odd is None:
        return None
    case = Case.of(queries, snapshot, _followed(queries, snapshot, odd))
    found = verdict(case)
    written = _written(case)
    spoken = spoken_names(case, found, written)
    inferred = _inferred_birth(case, spoken) if found.born < 0 else None
    if inferred is not None:
        found = replace(found, certainty="inferred")
    mend = fix(case, found)
    return Finding(
        rule="device-mismatch",
        severity="error",
        cause=found.cause,
        devices=(odd.expected_device, odd.odd_device),
        site=queries.site(queries.trace.ops.number("site", op)),
        op=op,
        culprit=_culprit(case, found, spoken, inferred),
        bytes=queries.trace.tensors.number("bytes", odd.odd_tensor),
        message=message(case, found, spoken[0] if spoken else "", _met(case, found, written), _along(case)),
        help=mend.help,
        edits=mend.edits,
        ops=(op,),
    )


def _followed(queries: TraceQueries, snapshot: FailureSnapshot, odd: Mismatch) -> Mismatch:
    """What torch's own layers make where their input is (LSTMCell its state) is not odd by itself: that input is."""
    ops, made = queries.trace.ops, queries.producer(odd.odd_tensor)
    place = queries.source_node(ops.number("site", odd.op))
    if made < 0 or queries.kind(made) != "create" or place is None or not isinstance(place.node, ast.Call):
        return odd
    if any(ops.number(column, made) != ops.number(column, odd.op) for column in ("site", "call")):
        return odd
    stand = FailingFrame.reading(snapshot, 0, odd.expected_device)
    if stand is None or origins.factory(place) is not None or ops.number("call", made) < 0:
        return odd
    given = [snapshot.row(value.value) for value in values(place.node, place.source, stand.scope())]
    there = (
        row for row in given if row is not None and queries.device(row) == odd.odd_device and queries.dims[row] > 0
    )
    return replace(odd, odd_tensor=next(there, odd.odd_tensor))


def _along(case: Case) -> list[str]:
    return [names[0].text for row in case.mismatch.others_on_odd_device if (names := case.snapshot.names(row))]


def spoken_names(case: Case, found: Verdict, written: list[str]) -> list[str]:
    """All names that fit, best first: of what the cause is about, the odd one, its expression, what it was made of."""
    first = [found.name.text] if found.name is not None else []
    named = [name.text for name in case.names]
    roots = [name.text for _, name in case.roots]
    said = [*_paths_of_theirs(case), *first, *named, *written, *roots, *_recorded(case)]
    return list(dict.fromkeys(name for name in said if name))


def _paths_of_theirs(case: Case) -> list[str]:
    """The name that a library of layers gave it, as Keras does: `sequential/dense/kernel`, `dense/kernel`."""
    said = [name.last.text.lstrip(".") for name in case.names]
    return [path for text in said if "/" in text for path in (text, text.partition("/")[2])][:2]


def _met(case: Case, found: Verdict, written: list[str]) -> str:
    """What to call the odd one, where the cause is about something that it was computed from; else empty."""
    if found.name is None or found.name in case.names:
        return ""
    return next((name for name in (*(name.text for name in case.names), *written)), "a tensor")


def _written(case: Case) -> list[str]:
    """What the source calls it: the variable that was given it, or its expression on the failing line."""
    queries = case.queries
    stand = FailingFrame.of(case.snapshot, 0, case.expected_device)
    node = stand.node_of(case.odd_tensor) if stand is not None else None
    here = [stand.code.text(node)] if stand is not None and node is not None else []
    op = queries.producer(case.odd_tensor)
    place = queries.source_node(queries.trace.ops.number("site", op)) if op >= 0 else None
    if place is None:
        return here
    failing = queries.source_node(queries.trace.ops.number("site", case.op))
    within = failing is not None and failing.statement is place.statement and failing.node is not place.node
    if within and isinstance(place.node, ast.expr):
        here.append(place.source.segment(place.node))
    outputs = queries.outputs(op)
    index = outputs.index(case.odd_tensor) if case.odd_tensor in outputs else 0
    given = origins.targets(place, index) if failing is None or failing.statement is not place.statement else []
    return [*here, *given]


def _recorded(case: Case) -> list[str]:
    tensors = case.queries.trace.tensors
    rows = (case.odd_tensor, case.queries.base(case.odd_tensor))
    return [str(tensors.raw("name", row)) for row in rows]


def _inferred_birth(case: Case, spoken: list[str]) -> Site | None:
    """Where the cells that ran before make what has this name, for a tensor that was made while nobody watched."""
    live, frames = case.queries.live, case.snapshot.frames
    if live is None or not frames or not spoken or case.origin.arrival != "given":
        return None
    owner = spoken[0].rpartition(".")[0]
    kind = next((module.type for module in case.queries.trace.modules if module.path == owner), "")
    return untraced_cells.birth(live.cells, frames[-1].f_code.co_filename, spoken[0], kind)


def _culprit(case: Case, found: Verdict, spoken: list[str], inferred: Site | None) -> Culprit:
    queries, row = case.queries, case.odd_tensor
    about = case.snapshot.row(found.name.objects[-1]) if found.name is not None and found.name.objects else None
    tensor = queries.trace.tensors[row if about is None else about]
    return Culprit(
        name=spoken[0] if spoken else "a tensor",
        names=tuple(spoken),
        device=case.odd_device,
        shape=tuple(tensor.shape),
        dtype=tensor.dtype,
        born=origins.shown(queries, found.born) or inferred,
        moved=origins.shown(queries, found.moved),
        chain=chain(queries, case),
        certainty=found.certainty,
    )


def chain(queries: TraceQueries, case: Case) -> tuple[Site, ...]:
    """From birth to use: the lines that the tensor came by."""
    rows = reversed(case.origin.path)
    sites = [queries.born(row) for row in rows]
    if sites and queries.package(sites[0]):
        sites.insert(0, int(queries.users[sites[0]]))  # the user's line that led there
    sites += [taken_at(case), queries.trace.ops.number("site", case.op)]
    places = {(site.file, site.line): site for id in sites if (site := origins.shown(queries, id)) is not None}
    return tuple(places.values())[-LONGEST_CHAIN:]
