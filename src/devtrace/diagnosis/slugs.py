"""Every slug of diagnosis as a type, so that mypy finds a misspelt one, and the keys of what is said of it."""

from collections.abc import Mapping
from typing import Final, Literal

from devtrace.words.catalogue import family

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
    "memory-growth",
    "memory-peak",
    "device-comparison",
    "collective-device",
    "rank-device",
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
    "asked-at-rest",
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

MEANINGS: Final = family(
    "*.meaning", "attached-after-move.meaning", "not-registered.meaning", "created-without-device.meaning",
    "never-moved.meaning", "stale-copy.meaning", "wrong-device.meaning", "host-boundary.meaning",
    "generator-device.meaning", "default-device.meaning", "asked-at-rest.meaning", "attached-after-cast.meaning",
    "created-without-dtype.meaning", "never-cast.meaning", "wrong-dtype.meaning", "numpy-boundary.meaning",
    "autocast-off.meaning", "python-number.meaning", "target-dtype.meaning", "unknown.meaning",
    "device-mismatch.meaning", "dtype-mismatch.meaning", "host-conversion.meaning", "generator-mismatch.meaning",
    "device-refused.meaning", "out-of-memory.meaning", "host-sync.meaning", "host-to-device-copy.meaning",
    "device-to-host-copy.meaning", "device-to-device-copy.meaning", "cpu-compute.meaning", "split-module.meaning",
    "memory-growth.meaning", "memory-peak.meaning", "device-comparison.meaning", "collective-device.meaning",
    "rank-device.meaning",
)  # fmt: skip
CREATED: Final = family(
    "*.created", "attached-after-move.created", "not-registered.created", "created-without-device.created",
    "never-moved.created", "stale-copy.created", "wrong-device.created", "host-boundary.created",
    "generator-device.created", "default-device.created", "asked-at-rest.created", "attached-after-cast.created",
    "created-without-dtype.created", "never-cast.created", "wrong-dtype.created", "numpy-boundary.created",
    "autocast-off.created", "python-number.created", "target-dtype.created", "unknown.created",
)  # fmt: skip
"""Beside the line that created the tensor."""
ADVICE: Final = family(
    "*.advice", "attached-after-move.advice", "not-registered.advice", "created-without-device.advice",
    "never-moved.advice", "stale-copy.advice", "wrong-device.advice", "host-boundary.advice",
    "generator-device.advice", "default-device.advice", "asked-at-rest.advice", "attached-after-cast.advice",
    "created-without-dtype.advice", "never-cast.advice", "wrong-dtype.advice", "numpy-boundary.advice",
    "autocast-off.advice", "python-number.advice", "target-dtype.advice", "unknown.advice",
)  # fmt: skip
"""Where no edit fits."""

Refused = Literal[
    "same", "index", "byte", "mask", "float", "single", "whole", "result", "number", "gradients", "numpy", "complex"
]
"""How torch refused a dtype.

    same          tensors that have to be of one dtype
    index         an index or a class number that is no whole number
    byte          an index of uint8, which torch takes as a mask
    mask          a mask that is not of bool
    float         whole numbers where an op computes with others
    single        half precision where there is no kernel for it
    whole         a difference of masks
    result        a result that does not fit the tensor which an op in place writes to
    number        a number that the tensor's dtype cannot hold
    gradients     gradients in half precision, which a scaler does not take
    numpy         a dtype that numpy does not have
    complex       real numbers where an op takes complex ones
"""
