"""Checks a trace against what was expected: where it computes, and how many syncs and copies it makes.

Making a tensor, filling it, copying it and looking at a view of it may happen anywhere. A number without dimensions may
stay on the CPU, where CUDA takes it from. A whole cell or program may also create tensors elsewhere and then move them:
first weights, a DataLoader's batches. Inside a `with expect(...)` block it may not.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Final

import numpy as np

from devtrace.api.options import may_be_a_device
from devtrace.api.results import Report, Trace, diagnose
from devtrace.contract.entries import COUNTED
from devtrace.diagnosis.evidence.tensors_off_device import Elsewhere, matches
from devtrace.diagnosis.findings import Culprit, Finding, Site, worst_first
from devtrace.recording.peak import Peak
from devtrace.source.vocabulary import FILLS
from devtrace.trace.views import storage_owners
from devtrace.words.catalogue import sentence
from devtrace.words.errors import DeviceError
from devtrace.words.text_format import format_memory, short_op_name

RULE: Final = "expectation"


@dataclass(frozen=True, slots=True)
class Used:
    """A tensor that was computed with elsewhere, the first op that did, and how many did."""

    tensor: Elsewhere
    op: int
    count: int


def computed_elsewhere(trace: Trace, expected: str, *, may_prepare: bool = False) -> list[Used]:
    """List tensors that compute ops took or made on another device, in the order of their first use."""
    other_devices = {id for id, device in enumerate(trace.devices) if not matches(device.name, expected)}
    if not other_devices:
        return []
    ops, tensors = trace.ops, trace.tensors
    owners = storage_owners(trace).tolist()
    preparing = _preparing_ops(trace, other_devices, owners) if may_prepare else set()
    first_ops: dict[int, int] = {}
    uses: Counter[int] = Counter()
    for op in _compute_ops(trace):
        if op in preparing:
            continue
        used = ops.lists("inputs")[op].tolist() or ops.lists("outputs")[op].tolist()
        for owner in {owners[tensor] for tensor in used if tensors.number("device", tensor) in other_devices}:
            if trace.tensors[owner].shape:  # a number may stay on the CPU
                first_ops.setdefault(owner, op)
                uses[owner] += 1
    return [
        Used(_tensor_elsewhere(trace, tensor, op, expected), op, uses[tensor])
        for tensor, op in first_ops.items()
        if not _comes_from_elsewhere(trace, tensor, other_devices)
    ]


def _compute_ops(trace: Trace) -> list[int]:
    """List the compute ops, without those that only fill a tensor."""
    kind = trace.string_id("compute")
    names = trace.ops.ints("name")
    fills = [id for id in np.unique(names).tolist() if short_op_name(trace.strings[id]) in FILLS]
    compute_ops: list[int] = np.flatnonzero((trace.ops.ints("kind") == kind) & ~np.isin(names, fills)).tolist()
    return compute_ops


def _preparing_ops(trace: Trace, other_devices: set[int], owners: list[int]) -> set[int]:
    """Find the ops whose results, or what was computed from them, were moved to the expected device."""
    ops, device = trace.ops, trace.tensors.ints("device")
    sources = trace.copies.ints("source")[~np.isin(trace.copies.ints("to"), list(other_devices))]
    moved_owners = {owners[tensor] for tensor in sources.tolist() if tensor >= 0 and device[tensor] in other_devices}
    preparing = set()
    for op in range(len(ops) - 1, -1, -1):
        if any(owners[tensor] in moved_owners for tensor in ops.lists("outputs")[op].tolist()):
            preparing.add(op)
            inputs = ops.lists("inputs")[op].tolist()
            moved_owners.update(owners[tensor] for tensor in inputs if device[tensor] in other_devices)
    return preparing


def _comes_from_elsewhere(trace: Trace, row: int, other_devices: set[int]) -> bool:
    """Return whether an input of the tensor's op was elsewhere too: of `b = a * 2` only `a` needs moving."""
    op = trace.tensors[row].producer
    return op is not None and op.kind == "compute" and any(
        trace.tensors.number("device", source) in other_devices for source in trace.ops.lists("inputs")[op.id].tolist()
    )  # fmt: skip


def _tensor_elsewhere(trace: Trace, row: int, op: int, expected: str) -> Elsewhere:
    tensor = trace.tensors[row]
    name = tensor.name or (
        tensor.site.text if tensor.site and tensor.site.text else sentence("elsewhere.input", op=trace.ops[op].name)
    )
    born = Site.of(tensor.site) if tensor.site else None
    fix = sentence("elsewhere.before", device=expected, line=_line_of_op(trace, op))
    return Elsewhere(name, tensor.device.name, tensor.shape.dims, tensor.dtype, fix, born)


def _line_of_op(trace: Trace, op: int) -> str:
    """Name the line of the user's own code that ran an op."""
    site = _own_site(trace, op)
    if site:
        return sentence("elsewhere.line", site=site, text=site.text)
    return sentence("elsewhere.op", op=trace.ops[op].name)


def device_error(trace: Trace, expected: str) -> DeviceError | None:
    """Make the error for tensors that were computed with elsewhere; None without any."""
    if not (used := computed_elsewhere(trace, expected)):
        return None
    devices = sorted({use.tensor.device for use in used})
    error = DeviceError.of("computed-elsewhere", count=len(used), devices=devices, expected=expected)
    return error.with_tensors(use.tensor for use in used)


def lines_that(trace: Trace, what: str) -> Counter[str]:
    """Count the "syncs" or "copies" of a trace by the line that made them."""
    by_line = Counter[str]()
    for row in diagnose(trace).ledger:
        count = row.syncs if what == "syncs" else row.copies
        if count:
            by_line[f"{row.site}  {row.site.text}"] += count
    return by_line


def count_error(trace: Trace, what: str, most: int) -> DeviceError | None:
    """Make the error for more syncs or copies than expected, with the lines that made them."""
    by_line = lines_that(trace, what)
    total = by_line.total()
    if total <= most:
        return None
    slug = "syncs-unexpected" if what == "syncs" else "copies-unexpected"
    counts = ((line, sentence(COUNTED[what], count=number)) for line, number in by_line.most_common())
    return DeviceError.of(slug, count=total, most=most).with_tensors(f"{count}   {line}" for line, count in counts)


def peak_error(peak: Peak | None) -> DeviceError | None:
    """Make the error for more memory than a bound allows."""
    if peak is None or not (highest := peak.beyond()):
        return None
    size, most = format_memory(highest), format_memory(peak.most)
    return DeviceError.of("peak-unexpected", device=peak.device, size=size, most=most)


def with_expectation(report: Report, expected: str) -> Report:
    """Add to a report a finding for each cause of tensors that were computed with elsewhere."""
    from devtrace.diagnosis.store import with_report

    if not may_be_a_device(expected):  # it was named before torch, or a backend that could know it, was imported
        note = sentence("note.expect-unknown", device=expected)
        return Report.of(with_report(report.trace, report.findings, report.ledger, (note,)))
    used = computed_elsewhere(report.trace, expected, may_prepare=True)
    findings = [_finding(report.trace, uses, expected) for uses in _by_cause(report.trace, used)]
    if not findings:
        return report
    return Report.of(with_report(report.trace, worst_first([*report.findings, *findings]), report.ledger, ()))


def _by_cause(trace: Trace, used: list[Used]) -> list[list[Used]]:
    """Group tensors that lines made or used together: a plain list's layers, and the gradients that come by them."""
    groups: list[tuple[set[object], list[Used]]] = []
    for use in used:
        lines: set[object] = {(site.file, site.line) for site in (use.tensor.born, _own_site(trace, use.op)) if site}
        overlapping = [group for group in groups if not lines.isdisjoint(group[0])]
        groups = [group for group in groups if group not in overlapping]
        joined = [*(earlier for _, uses in overlapping for earlier in uses), use]
        groups.append((lines.union(*(theirs for theirs, _ in overlapping)), joined))
    return [sorted(uses, key=lambda use: (-use.count, use.op)) for _, uses in groups]  # the culprit is used most


def _own_site(trace: Trace, op: int) -> Site | None:
    site = trace.ops[op].site
    return Site.of(site.caller or site) if site else None


def _finding(trace: Trace, uses: list[Used], expected: str) -> Finding:
    first, *others = uses
    tensor = first.tensor
    key = "expectation.group" if others else "expectation.message"
    return Finding(
        rule=RULE,
        severity="error",
        cause="unknown",
        devices=(tensor.device,),
        site=_own_site(trace, first.op),
        op=first.op,
        culprit=Culprit(tensor.name, (tensor.name,), tensor.device, tensor.shape, tensor.dtype, tensor.born),
        count=sum(use.count for use in uses),
        message=sentence(key, name=tensor.name, device=tensor.device, expected=expected, more=len(others)),
        help=tensor.fix,
    )
