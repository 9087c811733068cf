"""The sentences of a mismatch: what is where, and why it did not come along."""

from __future__ import annotations

import numpy as np

from devtrace.diagnosis.evidence.case import Case, Verdict
from devtrace.diagnosis.evidence.trace_queries import HOST
from devtrace.diagnosis.findings import Site
from devtrace.source.object_walk import registered
from devtrace.words.text_format import one_line


def message(case: Case, verdict: Verdict, said: str, met: str, fellows: list[str]) -> str:
    """A few sentences: the odd one and its device, the others and theirs, then the reason.

    `said` is what the cause is about, `met` the odd one where that was computed from it, else empty.
    """
    expected = case.expected_device
    if met:
        first = f"{met} is on {case.odd_device}, what it meets is on {expected}: it comes from {said}."
    else:
        beside = _beside(said, fellows)
        subject, verb = (f"{said} and .{beside[0]}", "are") if beside else (said or "a tensor", "is")
        first = f"{subject} {verb} on {case.odd_device}{_others(case, verdict, 1 + len(beside))}."
    return " ".join(
        part for part in (first, _reason(case, verdict), replica(case), _library(case), _phase(case)) if part
    )


def _beside(said: str, fellows: list[str]) -> list[str]:
    """The last names of the fellows that one owner holds beside the odd one."""
    owner = said.rpartition(".")[0]
    beside = [name.rpartition(".")[2] for name in fellows if name.rpartition(".")[0] == owner and name != said]
    return beside if owner else []


def _others(case: Case, verdict: Verdict, told: int) -> str:
    """Where the rest of the module is; "the others" only if no more than the tensors told of are anywhere else."""
    if verdict.module is not None and verdict.others and verdict.cause != "not-registered":
        whole, count = verdict.module.text, verdict.others
        elsewhere = sum(1 for _ in registered(verdict.module.objects[-1])) - count
        if elsewhere > told:
            others = "1 other tensor" if count == 1 else f"{count} other tensors"
        else:
            others = "the other tensor" if count == 1 else f"the other {count} tensors"
        return f"; {others} of {whole} {'is' if count == 1 else 'are'} on {case.expected_device}"
    return f", what it meets is on {case.expected_device}"


def _reason(case: Case, verdict: Verdict) -> str:
    module = verdict.module.text if verdict.module is not None else "the module"
    whole = module if verdict.module is not None and not verdict.others else "It"
    probably = "probably " if verdict.certainty == "inferred" else ""
    if verdict.dropped:
        return "`.to()` returns a moved copy and leaves the tensor itself; here nobody kept the copy."
    sentences = {
        "attached-after-move": f"It was {probably}attached to {module} after the move, which could not see it.",
        "not-registered": f"{module}.to() moves only parameters and buffers of registered modules; it is none.",
        "created-without-device": "It is created in the computation without a device=, so on the default device.",
        "never-moved": f"{whole} was {probably}never moved.",
        "stale-copy": "It was taken before the move and stayed where it was.",
        "wrong-device": _wrong(case),
        "default-device": "A default device is set, and this was created without a device.",
    }
    return sentences.get(verdict.cause, "")


def replica(case: Case) -> str:
    """A mismatch in a replica's thread: all replicas reach the same tensor."""
    thread = case.queries.trace.ops[case.op].thread
    if not case.in_a_replica:
        return ""
    return (
        f"This happened in DataParallel on {case.expected_device} ({thread.name}). "
        f"The replicas share this tensor{_shared(case)}: DataParallel copies registered parameters and buffers only."
    )


def _shared(case: Case) -> str:
    """The object that every replica has from the original: what holds the tensor, if that is no module or container."""
    for name in case.names:
        holder = name.objects[-2] if len(name.objects) > 1 else None
        if holder is not None and name.last.kind == "attribute":
            return f" through one {type(holder).__name__}"
    return ""


def _wrong(case: Case) -> str:
    if case.in_a_replica:
        return ""
    if case.odd_device != HOST and case.origin.row != case.subject:
        return f"It stayed on {case.odd_device} while the computation went on to {case.expected_device}."
    return "The code asks for this device by itself instead of taking that of its input."


def _library(case: Case) -> str:
    """Whose line it is that failed, when not the user's."""
    site = case.queries.trace.ops[case.op].site
    if site is None or not site.package:
        return ""
    entered = f", entered from {Site.of(site.caller)}: {one_line(site.caller.text)}" if site.caller else ""
    return f"This is code of the package {site.package}{_taken(case)}{entered}."


def _taken(case: Case) -> str:
    """The line of the package's class that holds it, where that is further out than the one that failed."""
    site = taken_at(case)
    row = case.queries.trace.sites[site] if site >= 0 else None
    return f" ({Site.of(row)}: {one_line(row.text)})" if row is not None else ""


def taken_at(case: Case) -> int:
    """Its site, or -1: `ops.matmul(inputs, self.kernel)` of a layer whose library computes elsewhere."""
    holders = {type(value).__name__ for name in case.names for value in name.objects[:-1]}
    failed = case.queries.trace.ops.number("site", case.op)
    for site in (failed, *case.queries.around):
        row = case.queries.trace.sites[site]
        if row.function.rpartition(".")[0] in holders:
            return site if row.package and site != failed else -1
    return -1


def _evaluating(case: Case) -> bool:
    """Whether the last module called before was in evaluation mode."""
    calls = case.queries.trace.calls
    before = np.flatnonzero(calls.ints("begin") <= case.op)
    return bool(len(before)) and calls.number("training", int(before[-1])) == 0


def _phase(case: Case) -> str:
    """A failure that only evaluation reaches."""
    queries, op = case.queries, case.op
    ops = queries.trace.ops
    trained = (queries.trace.ops.ints("phase")[:op] == queries.strings.get("backward", -1)).any()
    if trained and not ops.number("grad", op) and _evaluating(case):
        return "Training did not reach this line; it ran first without gradients, in evaluation."
    return ""
