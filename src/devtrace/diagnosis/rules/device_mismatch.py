"""device-mismatch: an op was given tensors of several devices and raised."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from devtrace.diagnosis.causes.case import Case, Verdict
from devtrace.diagnosis.causes.verdicts import verdict
from devtrace.diagnosis.evidence import origins, untraced_cells
from devtrace.diagnosis.evidence.failure_snapshot import FailureSnapshot
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.suspects import Suspect, suspect
from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.diagnosis.findings import Culprit, Finding, Site
from devtrace.diagnosis.fixes.strategies import fix
from devtrace.diagnosis.messages import message, taken_at
from devtrace.diagnosis.rules import generator_mismatch, host_conversion
from devtrace.source.reading import values
from devtrace.trace.rows import Failure

_SAYS_DEVICE: Final = re.compile(r"device|cuda|Input type \(|on cpu", re.IGNORECASE)
_IS_MIX: Final = re.compile(r"same device|at least two devices|numpy|generator", re.IGNORECASE)
LONGEST_CHAIN: Final = 8


def device_errors(facts: TraceQueries) -> Iterator[Finding]:
    """A finding for each error of the trace that is about devices."""
    scene = FailureSnapshot(facts)
    for error in facts.trace.errors:
        if not _SAYS_DEVICE.search(error.message):
            continue
        try:
            found = _explained(facts, scene, error.op.id, error.message)
        except Exception as fault:  # noqa: BLE001 (torch's own error is shown all the same)
            yield _unexplained(
                facts, error.op.id, error, f"devtrace failed to explain it ({type(fault).__name__}: {fault})."
            )
            continue
        if found is not None:
            yield found
        elif _IS_MIX.search(error.message):
            yield _unexplained(facts, error.op.id, error, "The trace does not tell which tensor it was.")


def _explained(facts: TraceQueries, scene: FailureSnapshot, op: int, text: str) -> Finding | None:
    for explain in (host_conversion.host_conversion, generator_mismatch.generator_mismatch, device_mismatch):
        found = explain(facts, scene, op, text)
        if found is not None:
            return found
    return None


def _unexplained(facts: TraceQueries, op: int, error: Failure, why: str) -> Finding:
    """torch's own words, where devtrace has none."""
    first = error.message.strip().splitlines()[0] if error.message.strip() else ""
    devices = dict.fromkeys(facts.device(row) for row in facts.inputs(op))
    return Finding(
        rule="device-mismatch",
        severity="error",
        cause="unknown",
        devices=tuple(devices),
        site=facts.site(facts.trace.ops.number("site", op)),
        op=op,
        message=f"{error.type}: {first}\n{why}",
        ops=(op,),
    )


def device_mismatch(facts: TraceQueries, scene: FailureSnapshot, op: int, text: str) -> Finding | None:
    odd = suspect(facts, op)
    if odd is None:
        return None
    case = Case.of(facts, scene, _followed(facts, scene, odd))
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
        devices=(odd.expected_device, odd.device),
        site=facts.site(facts.trace.ops.number("site", op)),
        op=op,
        culprit=_culprit(case, found, spoken, inferred),
        bytes=facts.trace.tensors.number("bytes", odd.tensor),
        message=message(case, found, spoken[0] if spoken else "", _met(case, found, written), _along(case)),
        help=mend.help,
        edits=mend.edits,
        ops=(op,),
    )


def _followed(facts: TraceQueries, scene: FailureSnapshot, odd: Suspect) -> Suspect:
    """What torch's own layers make where their input is (LSTMCell its state) is not odd by itself: that input is."""
    ops, made = facts.trace.ops, facts.producer(odd.tensor)
    place = facts.place(ops.number("site", odd.op))
    if made < 0 or facts.kind(made) != "create" or place is None or not isinstance(place.node, ast.Call):
        return odd
    if any(ops.number(column, made) != ops.number(column, odd.op) for column in ("site", "call")):
        return odd
    stand = FailingFrame.reading(scene, 0, odd.expected_device)
    if stand is None or origins.factory(place) is not None or ops.number("call", made) < 0:
        return odd
    given = [scene.row(value.value) for value in values(place.node, place.source, stand.scope())]
    there = (row for row in given if row is not None and facts.device(row) == odd.device and facts.dims[row] > 0)
    return replace(odd, tensor=next(there, odd.tensor))


def _along(case: Case) -> list[str]:
    return [names[0].text for row in case.suspect.others_on_odd_device if (names := case.scene.names(row))]


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
    facts = case.facts
    stand = FailingFrame.of(case.scene, 0, case.suspect.expected_device)
    node = stand.node_of(case.suspect.tensor) if stand is not None else None
    here = [stand.code.text(node)] if stand is not None and node is not None else []
    op = facts.producer(case.suspect.tensor)
    place = facts.place(facts.trace.ops.number("site", op)) if op >= 0 else None
    if place is None:
        return here
    failing = facts.place(facts.trace.ops.number("site", case.suspect.op))
    within = failing is not None and failing.statement is place.statement and failing.node is not place.node
    if within and isinstance(place.node, ast.expr):
        here.append(place.source.segment(place.node))
    outputs = facts.outputs(op)
    index = outputs.index(case.suspect.tensor) if case.suspect.tensor in outputs else 0
    given = origins.targets(place, index) if failing is None or failing.statement is not place.statement else []
    return [*here, *given]


def _recorded(case: Case) -> list[str]:
    tensors = case.facts.trace.tensors
    rows = (case.suspect.tensor, case.facts.base(case.suspect.tensor))
    return [str(tensors.raw("name", row)) for row in rows]


def _inferred_birth(case: Case, spoken: list[str]) -> Site | None:
    """Where the cells that ran before make what has this name, for a tensor that was made while nobody watched."""
    live, frames = case.facts.live, case.scene.frames
    if live is None or not frames or not spoken or case.origin.put != "given":
        return None
    owner = spoken[0].rpartition(".")[0]
    kind = next((module.type for module in case.facts.trace.modules if module.path == owner), "")
    return untraced_cells.birth(live.cells, frames[-1].f_code.co_filename, spoken[0], kind)


def _culprit(case: Case, found: Verdict, spoken: list[str], inferred: Site | None) -> Culprit:
    facts, row = case.facts, case.suspect.tensor
    about = case.scene.row(found.name.objects[-1]) if found.name is not None and found.name.objects else None
    tensor = facts.trace.tensors[row if about is None else about]
    return Culprit(
        name=spoken[0] if spoken else "a tensor",
        names=tuple(spoken),
        device=case.suspect.device,
        shape=tuple(tensor.shape),
        dtype=tensor.dtype,
        born=origins.shown(facts, found.born) or inferred,
        moved=origins.shown(facts, found.moved),
        chain=chain(facts, case),
        certainty=found.certainty,
    )


def chain(facts: TraceQueries, case: Case) -> tuple[Site, ...]:
    """From birth to use: the lines that the tensor came by."""
    rows = reversed(case.origin.path)
    sites = [facts.born(row) for row in rows]
    if sites and facts.package(sites[0]):
        sites.insert(0, int(facts.users[sites[0]]))  # the user's line that led there
    sites += [taken_at(case), facts.trace.ops.number("site", case.suspect.op)]
    places = {(site.file, site.line): site for id in sites if (site := origins.shown(facts, id)) is not None}
    return tuple(places.values())[-LONGEST_CHAIN:]
