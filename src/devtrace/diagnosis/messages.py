"""The sentences of a mismatch: which tensor is where, and why it did not come along."""

from dataclasses import replace
from typing import Final

import numpy as np

from devtrace.diagnosis.causes import ordered
from devtrace.diagnosis.evidence.accelerate_hooks import owner_with_hook
from devtrace.diagnosis.evidence.access_paths import AccessPath
from devtrace.diagnosis.evidence.case import Case, Verdict
from devtrace.diagnosis.evidence.origins import find_origin
from devtrace.diagnosis.evidence.source_text import statement_site
from devtrace.diagnosis.evidence.trace_queries import META
from devtrace.diagnosis.findings import Site
from devtrace.source.object_walk import registered
from devtrace.trace.ids import NO_SITE, SiteId
from devtrace.words.catalogue import family, one_after_another, sentence
from devtrace.words.text_format import one_line


def message(case: Case, verdict: Verdict, name: str, operand: str | None) -> str:
    """Say where the odd tensor and the others are, then why.

    `name` is of the tensor that the cause is about. `operand` is of the odd one, if that was computed from it.
    """
    where = {"odd": case.odd_device}
    if operand is not None:
        first = sentence("mismatch.computed", operand=operand, name=name, rest=_other_inputs(case), **where)
    else:
        siblings = _siblings(case, verdict, name)
        rest = _others(case, verdict, 1 + len(siblings))
        first = (
            sentence("mismatch.tensors", name=name, sibling=siblings[0], rest=rest, **where)
            if siblings
            else sentence("mismatch.tensor", name=name, rest=rest, **where)
        )
    reason = _reason(case, verdict)
    parts = (first, reason, _intent(case, verdict), _hook(case), _replica(case), _package(case), _phase(case))
    return one_after_another(parts)


def _reason(case: Case, verdict: Verdict) -> str:
    """Say why; of what was read from the source of a program that nobody recorded say once that it is probable."""
    if case.queries.evidence.saw_ops or verdict.certainty == "seen" or case.mismatch.of == "copy":
        return ordered.reason(case, verdict)
    reason = ordered.reason(case, replace(verdict, certainty="seen"))
    return sentence("explained.probably", reason=reason) if reason else ""


def _siblings(case: Case, verdict: Verdict, name: str) -> list[str]:
    """Return the last steps to other odd inputs that the same owner holds: `.bias` beside `model.head.weight`."""
    path = next((path for path in (verdict.name, *case.names) if path is not None and path.text == name), None)
    named = [names[0] for row in case.mismatch.others_on_odd_device if (names := case.snapshot.names(row))]
    if path is None:
        return []
    owner, _ = _split(path)
    return [_split(each)[1] for each in named if each.text != name and owner and _split(each)[0] == owner]


def _split(path: AccessPath) -> tuple[str, str]:
    """Return `model.head` and `.weight`; of an item `states["a.b"]` the variable, and all of it."""
    last = max((at for at, text in enumerate(path.texts) if text.startswith(".")), default=0)
    owner, rest = "".join(path.texts[:last]), "".join(path.texts[last:])
    return (owner, rest) if last else (path.texts[0] if len(path.texts) > 1 else "", rest)


def _others(case: Case, verdict: Verdict, named: int) -> str:
    """Say where the rest of the module is: "the others", if all but the named tensors are there."""
    if (
        verdict.module is None
        or not verdict.others
        or verdict.cause == "not-registered"
        or case.mismatch.of != "inputs"
    ):
        return _other_inputs(case)
    count = verdict.others
    elsewhere = sum(1 for _ in registered(verdict.module.last.value)) - count
    key = "mismatch.module-in-part" if elsewhere > named else "mismatch.module"
    return sentence(key, count=count, module=verdict.module.text, expected=case.expected_device)


_REFUSED: Final = family(
    "mismatch.*", "mismatch.gradient", "mismatch.copy", "mismatch.index", "mismatch.mask", "mismatch.float",
    "mismatch.single", "mismatch.result", "mismatch.gradients", "mismatch.numpy", "mismatch.copy-somewhere",
    "mismatch.number-somewhere", "mismatch.whole-somewhere",
)  # fmt: skip


def _other_inputs(case: Case) -> str:
    """Say where the other inputs are, or what else torch refused."""
    if case.mismatch.of != "inputs":
        if not case.expected_device or case.mismatch.of == "number":
            return sentence(_REFUSED[f"{case.mismatch.of}-somewhere"])
        return sentence(_REFUSED[case.mismatch.of], expected=case.expected_device)
    expected = [row for row in case.queries.inputs(case.op) if case.is_expected(row)]
    return sentence("mismatch.inputs", count=len(set(expected)), expected=case.expected_device)


def _intent(case: Case, verdict: Verdict) -> str:
    """Quote what says that the CPU is meant; where nothing says which device is, say what put the others elsewhere."""
    words = case.mismatch.words
    if words is not None:
        return sentence("mismatch.asked", expected=case.expected_device, line=words, text=one_line(words.text))
    whole = verdict.kind == "never-moved" and verdict.module is not None and not verdict.others
    if not case.mismatch.is_undecided or not whole:
        return ""
    rows = (row for row in case.queries.inputs(case.op) if case.is_expected(row))
    origins = (find_origin(case.queries, row) for row in rows)
    arrived = next((each for each in origins if each.arrival in ("copied", "made-there")), None)
    site = statement_site(case.queries, case.queries.born(arrived.row)) if arrived is not None else None
    if site is None:
        return ""
    text = one_line(site.text)
    return sentence("mismatch.either", odd=case.odd_device, line=site, expected=case.expected_device, text=text)


def _hook(case: Case) -> str:
    """Say that a hook of the module that owns the tensor brought the others to where they are."""
    owner = owner_with_hook(case) if case.mismatch.of == "inputs" and case.odd_device != META else None
    return sentence("mismatch.hook", module=owner.text, expected=case.expected_device) if owner is not None else ""


def _replica(case: Case) -> str:
    """Say that all replicas of DataParallel share the tensor, if the op failed in one."""
    if not case.in_a_replica:
        return ""
    where = {"expected": case.expected_device, "thread": case.queries.trace.ops[case.op].thread.name}
    kind = _shared(case)
    return sentence("mismatch.replica-object", kind=kind, **where) if kind else sentence("mismatch.replica", **where)


def _shared(case: Case) -> str:
    """Name the class of the object that every replica has from the original, if an object holds the tensor."""
    for name in case.names:
        holder = name.objects[-2] if len(name.objects) > 1 else None
        if holder is not None and name.last.kind == "attribute":
            return type(holder).__name__
    return ""


def _package(case: Case) -> str:
    """Name the package whose line failed, and the user's line that led there."""
    site = case.queries.trace.ops[case.op].site
    if site is None or not site.package:
        return ""
    line = package_line_with_the_owner(case)
    row = case.queries.trace.sites[line] if line >= 0 else None
    sentences = [
        sentence("mismatch.package", package=site.package)
        if row is None
        else sentence("mismatch.package-owner", package=site.package, owner=Site.of(row), owner_text=one_line(row.text))
    ]
    if site.caller:
        caller = Site.of(site.caller)
        sentences.append(sentence("mismatch.package-entered", caller=caller, text=one_line(caller.text)))
    return one_after_another(sentences)


def package_line_with_the_owner(case: Case) -> SiteId:
    """Return the site in the class that holds the tensor, or -1, where a package computes further in.

    Example: `ops.matmul(inputs, self.kernel)` of a layer of Keras.
    """
    holders = {type(value).__name__ for name in case.names for value in name.objects[:-1]}
    failed = case.queries.op_site(case.op)
    for site in (failed, *case.queries.around):
        row = case.queries.trace.sites[site]
        if row.function.rpartition(".")[0] in holders:
            return site if row.package and site != failed else NO_SITE
    return NO_SITE


def _phase(case: Case) -> str:
    """Say that only evaluation reached the line, if so."""
    ops = case.queries.trace.ops
    before = slice(case.op)
    trained = case.queries.is_phase("backward")[before].any()
    trained_here = ops.ints("grad")[before][ops.ints("site")[before] == ops.number("site", case.op)].any()
    if trained and not trained_here and not ops.number("grad", case.op) and _is_evaluating(case):
        return sentence("mismatch.evaluation")
    return ""


def _is_evaluating(case: Case) -> bool:
    """Return whether the last module called before was in evaluation mode."""
    calls = case.queries.trace.calls
    before = np.flatnonzero(calls.ints("begin") <= case.op)
    return bool(len(before)) and calls.number("training", int(before[-1])) == 0
