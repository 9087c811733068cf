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
    "report.note": "devtrace: {note}",
    "report.above-traceback": "{sign} {where}: {message} ↓ The report is below this traceback.",
    "report.left-on-devices": (
        "{names:and} {count:=is|are} left on {devices:and}, simulated for this cell only; "
        "to go on in other cells, type `%devtrace simulate {spec}`"
    ),
    "report.more-names": "{count:more name|more names}",
    "report.more": "{count:more finding|more findings}",
    "report.rule-failed": "the rule {name} failed ({fault}); the trace is complete",
}
