"""The sentences at the end of a report on the memory of devices."""

from collections.abc import Iterator
from typing import Final

from devtrace.diagnosis.findings import ReportData
from devtrace.report.parts import MEMORY_KINDS, curves_of_limits, has_holders
from devtrace.trace.curve import Curve, Part
from devtrace.trace.tables import TraceData
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import format_memory

MOST_PARTS: Final = 3


def peaks(report: ReportData) -> Iterator[str]:
    """Yield the highest memory of each device of which it was asked, unless a finding names who holds it."""
    if not has_holders(report):
        yield from (_peak(curve, report.trace) for curve in curves_of_limits(report))


def _peak(curve: Curve, trace: TraceData) -> str:
    """Say how much a device held at most, where, and the largest parts of it."""
    op = int(curve.ops[curve.peak])
    site = trace.ops[op].site if 0 <= op < len(trace.ops) else None
    where = sentence("memory.at-begin") if op < 0 else ""
    where = sentence("memory.at", site=str(site.caller or site)) if site is not None else where
    key = "memory.peak-of" if curve.limit else "memory.peak" if curve.is_exact else "memory.at-least"
    sizes = {"size": format_memory(int(curve.total[curve.peak])), "limit": format_memory(curve.limit)}
    largest = [_part(part, size) for part, size in curve.at_peak()[:MOST_PARTS]]
    return sentence(key, device=curve.device, where=where, parts=largest, **sizes)


def _part(part: Part, size: int) -> str:
    words = {"size": format_memory(size), "kind": sentence(MEMORY_KINDS[part.kind])}
    return sentence("memory.part-of", name=part.name, **words) if part.name else sentence("memory.part", **words)
