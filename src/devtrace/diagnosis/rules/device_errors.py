"""A finding for each error about devices, by the first rule that explains it, else in torch's own words."""

import re
from collections.abc import Iterator
from typing import Final

from devtrace.diagnosis.evidence import cpu_only
from devtrace.diagnosis.evidence.failure_snapshot import FailureSnapshot
from devtrace.diagnosis.evidence.torchs_sentences import ABOUT_DEVICES
from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.diagnosis.findings import Finding
from devtrace.diagnosis.rules.error_rules import ERROR_RULES
from devtrace.trace.rows import Failure
from devtrace.words.catalogue import sentence

_IS_ABOUT_DEVICES: Final = re.compile(r"device|cuda|Input type \(|on cpu", re.IGNORECASE)
_TYPES: Final = re.compile(r"Input type \((\S+)\) and \w+ type \((\S+)\) should be the same")
_IS_MIX: Final = re.compile(r"same device|at least two devices|numpy|generator", re.IGNORECASE)


def device_errors(queries: TraceQueries) -> Iterator[Finding]:
    snapshot = FailureSnapshot(queries)
    for error in queries.trace.errors:
        if _is_of_dtypes(queries, error):
            continue
        is_torchs = ABOUT_DEVICES.search(error.message) is not None
        names_devices = is_torchs or _IS_ABOUT_DEVICES.search(error.message) is not None
        if not names_devices and cpu_only.refused(error.message) is None:
            continue
        try:
            explained = (rule.explain(queries, snapshot, error.op.id, error.message) for rule in ERROR_RULES)
            finding = next((finding for finding in explained if finding is not None), None)
        except Exception as fault:  # noqa: BLE001 (torch's own error is shown all the same)
            yield _in_torchs_words(
                queries, error, sentence("error.not-explained", fault=f"{type(fault).__name__}: {fault}")
            )
            continue
        if finding is not None:
            yield finding
        elif (names_devices and not queries.evidence.saw_ops) or is_torchs or _IS_MIX.search(error.message):
            key = "unknown-recorded" if queries.evidence.saw_ops else "unknown-tensor"
            yield _in_torchs_words(queries, error, sentence(f"explained.{key}"))


def _is_of_dtypes(queries: TraceQueries, error: Failure) -> bool:
    """Return whether a convolution's inputs differ in dtype alone: its sentence is that of two devices."""
    types = _TYPES.search(error.message)
    if types is None or types[0].count("torch.") == len(types.groups()):
        return False
    return len({queries.device(row) for row in queries.inputs(error.op.id)}) < 2


def _in_torchs_words(queries: TraceQueries, error: Failure, why: str) -> Finding:
    first = error.message.strip().splitlines()[0] if error.message.strip() else ""
    op = error.op.id
    return Finding(
        rule="device-mismatch",
        severity="error",
        cause="unknown",
        devices=tuple(dict.fromkeys(queries.device(row) for row in queries.inputs(op))),
        site=queries.site(queries.trace.ops.number("site", op)),
        op=op,
        message=sentence("error.in-torchs-words", type=error.type, text=first, why=why),
        ops=(op,),
    )
