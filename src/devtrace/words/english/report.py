"""Labels and sentences of a report beside its findings."""

from __future__ import annotations

from typing import Final

SENTENCES: Final[dict[str, str]] = {
    "label.created": "Created",
    "label.attached": "Attached",
    "label.moved": "Moved",
    "label.missed": "Missed by",
    "label.then": "Then",
    "label.fix": "Fix",
    "site": "{name} line {line:d}",
    "report.no-line": "somewhere",
    "report.ops": "{ops}.",
    "report.clean": "✓ No device problems: {ops}.",
    "report.ops-of-device": "{count:op|ops} on {device}",
    "report.no-ops": "no op ran",
    "report.folded": " ({count:repeated op is|repeated ops are} counted, not kept)",
    "report.count-h2d": "{count:copy|copies} to a device",
    "report.count-d2h": "{count:copy|copies} to the CPU",
    "report.count-d2d": "{count:copy|copies} between devices",
    "report.count-syncs": "{count:wait|waits} of the CPU for a device",
    "report.counts": "{counts}{copied}.",
    "report.copied": "; {size:bytes} copied in total",
    "explained.untraced": "devtrace explains this error, which it did not trace:",
    "explained.not-seen": "this code ran untraced: what was before the error is read from the source",
    "explained.most-objects": "{count:object|objects} were looked at; others may have been left out",
    "explained.most-items": (
        "of long lists the first {count:item|items} were looked at; the longest has {longest:item|items}"
    ),
    "explained.as-text": "the error came as text, its variables are gone; to see the tensor, run it once {how}",
    "explained.how-worker": "with num_workers=0",
    "explained.how-replica": "with the model itself in place of DataParallel",
    "explained.how-other": "in one thread",
    "explained.no-error": "there is no error to explain",
    "explained.other-error": "this error is not about devices",
    "explained.failed": "the error was not explained ({fault})",
    "explained.unknown-tensor": "Neither its frames nor the source show which tensor it was; recorded, the run would.",
    "explained.unknown-recorded": "The trace does not tell which tensor it was.",
    "report.advice": "{sign} {where}: {message} {label}: {help}.",
    "report.note": "devtrace: {note}",
    "report.above-traceback": "{sign} {where}: {message} ↓ The report is below this traceback.",
    "report.left-on-devices": (
        "{names:and} {count:=is|are} left on {devices:and}, simulated for this cell only; "
        "to go on in other cells, type `%devtrace simulate {spec}`"
    ),
    "report.nothing-on-devices": (
        "no op of this cell ran on a simulated device: what earlier cells made, and a device that they chose, are "
        "still on the CPU; to try them on a device, type `%devtrace simulate {spec}` and run them again"
    ),
    "report.no-cuda": (
        "torch has no CUDA device here; to try this notebook on a simulated one, type `%devtrace simulate cuda:1` and "
        "run the cell again"
    ),
    "report.more-names": "{count:more name|more names}",
    "report.more": "{count:more finding|more findings}",
    "report.rule-failed": "the rule {name} failed ({fault}); the trace is complete",
    "devices.none": "No name has a tensor.",
    "devices.simulated": " (simulated)",
    "devices.total": ": {count:tensor|tensors}, {size:bytes}",
    "devices.more": "{count:more name|more names}",
    "devices.findings": "Findings of {cells}:",
    "devices.no-findings": "No finding in {cells}.",
    "devices.no-cells": "No cell has been traced yet.",
}
