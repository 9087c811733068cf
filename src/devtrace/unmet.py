"""What a trace did that was not expected of it: tensors computed with elsewhere, syncs and copies beyond their number.

Making a tensor, copying it and looking at a view of it may happen anywhere; a number without dimensions may stay on the
CPU, where CUDA takes it from.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from .diagnose import diagnose
from .diagnose.elsewhere import Elsewhere, matches
from .errors import DeviceError
from .plain import counted
from .report import Finding, Report, Site, worst_first
from .trace import Trace

RULE = "expectation"


@dataclass(frozen=True, slots=True)
class Used:
    """A tensor that an op computed with elsewhere, and where that was first."""

    tensor: Elsewhere
    op: int
    count: int


def computed_elsewhere(trace: Trace, expected: str) -> list[Used]:
    """Tensors that compute ops took or made on another device, in the order of their first use."""
    off = {id for id, device in enumerate(trace.devices) if not matches(device.name, expected)}
    if not off:
        return []
    ops, tensors = trace.ops, trace.tensors
    kind = trace.strings.index("compute") if "compute" in trace.strings else -1
    first: dict[int, int] = {}
    uses: Counter[int] = Counter()
    for op in np.flatnonzero(ops.ints("kind") == kind).tolist():
        taken = ops.lists("inputs")[op].tolist() or ops.lists("outputs")[op].tolist()
        for row in {_own(trace, row) for row in taken if tensors.number("device", row) in off}:
            if trace.tensors[row].shape:
                first.setdefault(row, op)
                uses[row] += 1
    return [
        Used(_told(trace, row, op, expected), op, uses[row]) for row, op in first.items() if not _inner(trace, row, off)
    ]


def _own(trace: Trace, row: int) -> int:
    """The tensor whose memory this is: a view stands for what it is a view of."""
    while (
        (op := trace.tensors[row].producer) is not None and op.kind == "view" and (source := trace.tensors[row].source)
    ):
        row = source.id
    return row


def _inner(trace: Trace, row: int, off: set[int]) -> bool:
    """Whether it was computed from others that are told of: only those that start a chain need moving."""
    op = trace.tensors[row].producer
    return op is not None and op.kind == "compute" and any(
        trace.tensors.number("device", taken) in off for taken in trace.ops.lists("inputs")[op.id].tolist()
    )  # fmt: skip


def _told(trace: Trace, row: int, op: int, expected: str) -> Elsewhere:
    tensor = trace.tensors[row]
    name = tensor.name or (
        tensor.site.text if tensor.site and tensor.site.text else f"an input of {trace.ops[op].name}"
    )
    born = Site.of(tensor.site) if tensor.site else None
    fix = f'move it to "{expected}" before this line'
    return Elsewhere(name, tensor.device.name, tensor.shape.dims, tensor.dtype, fix, born)


def device_error(trace: Trace, expected: str) -> DeviceError | None:
    """The error for tensors that were computed with elsewhere."""
    used = computed_elsewhere(trace, expected)
    if not used:
        return None
    return DeviceError(
        "computed-elsewhere",
        f"{counted(len(used), 'tensor')} computed with on {', '.join(sorted({use.tensor.device for use in used}))}",
        f"all computation was expected on {expected}",
        "move them there",
        tuple(use.tensor for use in used),
    )


def count_error(trace: Trace, what: str, most: int) -> DeviceError | None:
    """The error for more syncs or copies than expected, with the lines that made them."""
    by_line = Counter[str]()
    for row in diagnose(trace).ledger:
        by_line[f"{row.site}  {row.site.text}"] += row.syncs if what == "syncs" else row.h2d + row.d2h + row.d2d
    total = sum(by_line.values())
    if total <= most:
        return None
    lines = tuple(
        f"{counted(count, what[:-1] if what == 'syncs' else 'copy', what)}   {line}"
        for line, count in by_line.most_common()
        if count
    )
    return DeviceError(
        f"{what}-unexpected",
        counted(total, "sync" if what == "syncs" else "copy", what),
        f"at most {most:,} {'was' if most == 1 else 'were'} expected",
        "see the lines below",
        lines,
    )


def with_expectation(report: Report, expected: str) -> Report:
    """The report, with a finding for each line at which a tensor was first computed with elsewhere."""
    from .diagnose.store import with_report

    used = computed_elsewhere(report.trace, expected)
    found = [_finding(report.trace, use, expected) for use in used]
    if not found:
        return report
    return with_report(report.trace, worst_first([*report.findings, *found]), report.ledger, ())


def _finding(trace: Trace, use: Used, expected: str) -> Finding:
    op = trace.ops[use.op]
    tensor = use.tensor
    return Finding(
        rule=RULE,
        severity="error",
        cause="unknown",
        devices=(tensor.device,),
        site=Site.of(op.site.caller or op.site) if op.site else None,
        op=use.op,
        count=use.count,
        message=f"{tensor.name} is on {tensor.device}; all computation was expected on {expected}.",
        help=tensor.fix,
    )
