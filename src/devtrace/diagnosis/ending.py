"""How the program ended: whether all is well with its devices, and what it failed of if no finding says it."""

import re
from collections.abc import Sequence
from typing import Final

import numpy as np

from devtrace.diagnosis.evidence import model_on_host
from devtrace.diagnosis.evidence.torchs_sentences import ABOUT_DEVICES, BEFORE_ITS_ERROR
from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.diagnosis.findings import Finding, LedgerRow, ReportData
from devtrace.diagnosis.ledger import directions
from devtrace.trace.ids import NO_OP, NO_TENSOR
from devtrace.words.catalogue import sentence
from devtrace.words.errors import DeviceError
from devtrace.words.text_format import shorten

_OF_DEVICES: Final = re.compile(r"cuda|cudnn|cublas|nccl|\bhip|\bxpu|\bmps|device|out of memory", re.IGNORECASE)
_REFUSED_BY_A_KERNEL: Final = "device-side assert triggered"
FAILED: Final = "failed: "


def closing(queries: TraceQueries, findings: Sequence[Finding]) -> str:
    """Say which error ended the program, if no finding does, and whether a device had a part in it.

    A device error of torch or `devtrace.expect` counts as one even if the program raised it again.
    """
    outcome, frames = queries.trace.outcome, queries.frame_sites
    if not outcome.startswith(FAILED) or not frames or any(finding.severity == "error" for finding in findings):
        return ""
    error = outcome.removeprefix(FAILED)
    site, (name, _, message) = queries.site(queries.user(frames[0])), error.partition(": ")
    if name == DeviceError.__name__ or ABOUT_DEVICES.search(message):
        text = shorten(BEFORE_ITS_ERROR.sub("", message), 120)
        return sentence("report.failed-of-devices", error=name, site=site, text=text)
    keys = "report.failed", "report.failed-in-a-kernel", "report.failed-unknown"
    return sentence(by_part_of_a_device(error, *keys), error=name, site=site)


def by_part_of_a_device(error: str, none: str, in_a_kernel: str, unknown: str) -> str:
    """Choose a sentence's key by a device's part in an error about something else: none, a kernel's assert, unknown."""
    if _REFUSED_BY_A_KERNEL in error:
        return in_a_kernel
    return unknown if _OF_DEVICES.search(error) else none


def is_clear(queries: TraceQueries, rows: Sequence[LedgerRow]) -> bool:
    """Return whether the program ended, used an accelerator, and left nothing of a model elsewhere."""
    used = ReportData(queries.trace, (), tuple(rows)).used_accelerator
    if queries.trace.outcome != "ended" or not used:
        return False
    return not (model_on_host.computes(queries) or _copies_within_a_model(queries) or _has_a_detour(queries))


def _has_a_detour(queries: TraceQueries) -> bool:
    """Return whether a device's result was copied to the CPU, and the copy back to a device."""
    tensors = queries.trace.tensors
    sources, devices = tensors.ints("source"), tensors.ints("device")
    back = np.flatnonzero((sources >= 0) & (queries.producers >= 0) & (devices != queries.host))
    bases = queries.bases[sources[back]]
    on_cpu = bases[(devices[bases] == queries.host) & (queries.producers[bases] >= 0) & (queries.dims[bases] > 0)]
    originals = sources[on_cpu]
    on_device = queries.bases[originals[(originals >= 0) & (devices[originals] != queries.host)]]
    makers = queries.producers[on_device]
    return bool((queries.is_kind("compute") & queries.on_a_device)[makers[makers >= 0]].any())


def _copies_within_a_model(queries: TraceQueries) -> bool:
    """Return whether gradients crossed from or to the CPU, or modules' calls copied their results or a tensor twice."""
    sites, copy_ops = queries.trace.ops.ints("site"), queries.trace.copies.ints("op")
    forward = ~queries.is_phase("backward")
    outermost, to = queries.outermost_calls, directions(queries)
    copied: set[int] = set()
    with_the_host = to["h2d"] | to["d2h"]  # between devices a model that is split copies on purpose
    if (with_the_host & ~forward[copy_ops]).any():
        return True
    for op in copy_ops[with_the_host & (outermost[copy_ops] >= 0) & forward[copy_ops]].tolist():
        base = next(map(queries.base, queries.carried(op)), NO_TENSOR)
        maker = queries.producer(base) if base >= 0 else NO_OP
        is_own_result = maker >= 0 and outermost[maker] == outermost[op]
        if base in copied or (is_own_result and sites[maker] != sites[op]):  # `torch.tensor(1.0, device=d)` is one site
            return True
        copied.add(base)
    return False
