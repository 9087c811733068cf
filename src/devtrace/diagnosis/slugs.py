"""Every slug of diagnosis as a type, so that mypy finds a misspelt one."""

from collections.abc import Mapping
from typing import Final, Literal

RuleSlug = Literal[
    "device-mismatch",
    "dtype-mismatch",
    "host-conversion",
    "generator-mismatch",
    "device-refused",
    "out-of-memory",
    "host-sync",
    "host-to-device-copy",
    "device-to-host-copy",
    "device-to-device-copy",
    "cpu-compute",
    "split-module",
    "idle-optimizer",
    "memory-growth",
    "memory-peak",
    "device-comparison",
    "collective-device",
    "moved-after-wrap",
    "rank-device",
    "ranks-differ",
    "expectation",
]

CauseSlug = Literal[
    "attached-after-move",
    "not-registered",
    "created-without-device",
    "never-moved",
    "stale-copy",
    "wrong-device",
    "host-boundary",
    "generator-device",
    "default-device",
    "attached-after-cast",
    "created-without-dtype",
    "never-cast",
    "wrong-dtype",
    "numpy-boundary",
    "autocast-off",
    "python-number",
    "target-dtype",
    "unknown",
]

CASTS: Final[Mapping[CauseSlug, CauseSlug]] = {
    "attached-after-move": "attached-after-cast",
    "created-without-device": "created-without-dtype",
    "never-moved": "never-cast",
    "wrong-device": "wrong-dtype",
}
"""What the causes of a device are called for a dtype; the others are called alike."""
MOVES: Final[Mapping[CauseSlug, CauseSlug]] = {cast: move for move, cast in CASTS.items()}
Trait = Literal["device", "dtype"]
"""What tensors are compared by."""

Severity = Literal["error", "warning", "note"]
Certainty = Literal["seen", "inferred"]

Arrival = Literal["made", "made-there", "copied", "computed", "given"]
"""How data came to its device.

    made          a factory without a device= made it
    made-there    a factory with a device= made it
    copied        it was copied from another device
    computed      an op made it of another dtype than its inputs have
    given         it is from outside the trace, or was read from a list or from numpy
"""
