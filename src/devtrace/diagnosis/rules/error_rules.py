"""A finding for each error about devices or dtypes, by the first rule that explains it, else in torch's own words.

The rules stand in the order in which they are asked. An explanation needs no others.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from devtrace.diagnosis.evidence.failing_moment import FailingMoment
from devtrace.diagnosis.evidence.finding_parts import of_error
from devtrace.diagnosis.evidence.torchs_sentences import ABOUT_DEVICES, is_of_another_trait, refused
from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.diagnosis.findings import Finding
from devtrace.diagnosis.rules.device_mismatch import device_mismatch
from devtrace.diagnosis.rules.device_refused import device_refused
from devtrace.diagnosis.rules.generator_mismatch import generator_mismatch
from devtrace.diagnosis.rules.host_conversion import host_conversion
from devtrace.diagnosis.rules.run_rule import failed_rule
from devtrace.features import offers
from devtrace.trace.ids import OpId
from devtrace.trace.rows import Failure
from devtrace.words.catalogue import one_after_another, sentence
from devtrace.words.errors import named

Explain = Callable[[TraceQueries, FailingMoment, OpId, str], Finding | None]
"""Explains an op that raised, by torch's message; None where the error is of another rule."""

OF_DEVICES: Final[Mapping[str, Explain]] = {
    "device-refused": device_refused,
    "host-conversion": host_conversion,
    "generator-mismatch": generator_mismatch,
    "device-mismatch": device_mismatch,
}


def error_rules() -> dict[str, Callable[[], Explain]]:
    """Return what loads the rules of features, and then those of devices, which take what is left."""
    return {**offers("error rule"), **{slug: partial(OF_DEVICES.__getitem__, slug) for slug in OF_DEVICES}}


def rule_slugs() -> tuple[str, ...]:
    """Return the slugs of all rules, those for errors first."""
    return (*offers("error rule"), *OF_DEVICES, *offers("cost rule"), *offers("job rule"))


_IS_ABOUT_DEVICES: Final = re.compile(r"device|cuda|Input type \(|on cpu", re.IGNORECASE)
_IS_MIX: Final = re.compile(r"same device|at least two devices|numpy|generator", re.IGNORECASE)

_TRIED: Final = ("dtype-mismatch", "device-refused")
"""Rules of errors by which programs ask what is there; two devices in one op are a mistake, whoever catches it."""


def device_errors(queries: TraceQueries, notes: list[str]) -> Iterator[Finding]:
    """Yield what is wrong, once, however often a line raised it: each task of a server that awaits its model does.

    A rule that failed is added to the notes.
    """
    findings: dict[object, Finding] = {}
    for new in _one_by_one(queries, notes):
        thread = queries.trace.ops.number("thread", new.op) if new.op >= 0 else -1
        rank = queries.trace.threads.number("rank", thread) if thread >= 0 else -1
        key = (new.rule, new.site, new.message, new.edits, rank)
        same = findings.get(key)
        findings[key] = replace(same, count=same.count + 1, ops=(*same.ops, *new.ops)) if same is not None else new
    yield from findings.values()


def _one_by_one(queries: TraceQueries, notes: list[str]) -> Iterator[Finding]:
    moment = FailingMoment(queries)
    for error in queries.trace.errors:
        is_of_dtypes = is_of_another_trait(error.message)
        is_torchs = ABOUT_DEVICES.search(error.message) is not None and not is_of_dtypes
        names_devices = is_torchs or (_IS_ABOUT_DEVICES.search(error.message) is not None and not is_of_dtypes)
        if not names_devices and not is_of_dtypes and refused(error.message) is None:
            continue
        finding, fault = _explained(queries, moment, error, notes)
        if finding is not None:
            yield _noting_where_caught(queries, finding)
        elif fault:
            yield _in_torchs_words(queries, error, sentence("error.not-explained", fault=fault))
        elif (names_devices and not queries.evidence.saw_ops) or is_torchs or _IS_MIX.search(error.message):
            key = "explained.unknown-recorded" if queries.evidence.saw_ops else "explained.unknown-tensor"
            yield _in_torchs_words(queries, error, sentence(key))


def _explained(
    queries: TraceQueries, moment: FailingMoment, error: Failure, notes: list[str]
) -> tuple[Finding | None, str]:
    """Return the finding of the first rule that explains an error, else why a rule failed; empty if none did."""
    why = ""
    for slug, load in error_rules().items():
        try:
            finding = load()(queries, moment, error.op.id, error.message)
        except Exception as fault:  # noqa: BLE001 (other rules go on, and torch's own error is shown all the same)
            why, note = named(fault), failed_rule(slug, fault)
            notes += [note] if note not in notes else []
            continue
        if finding is not None:
            return finding, ""
    return None, why


def _noting_where_caught(queries: TraceQueries, finding: Finding) -> Finding:
    """Say where the program caught the error. It is a note where it tried a dtype or a device, and took another one."""
    if finding.op not in queries.snapshot.went_on:
        return finding
    caught = replace(finding, message=one_after_another((finding.message, sentence("mismatch.caught"))))
    if finding.rule not in _TRIED:
        return caught
    note = replace(caught, severity="note")
    return replace(note, help="", edits=()) if finding.rule == "device-refused" else note  # it has found another device


def _in_torchs_words(queries: TraceQueries, error: Failure, why: str) -> Finding:
    first_line = error.message.strip().splitlines()[0] if error.message.strip() else ""
    op = error.op.id
    return Finding(
        rule="device-mismatch",
        **of_error(queries, op),
        cause="unknown",
        devices=queries.devices_of(*queries.inputs(op)),
        message=sentence("error.in-torchs-words", type=error.type, text=first_line, why=why),
    )
