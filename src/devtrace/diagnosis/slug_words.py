"""The keys of what is said of a cause and of a rule, by its slug."""

from typing import Final

from devtrace.words.catalogue import family

MEANINGS: Final = family(
    "*.meaning", "attached-after-move.meaning", "not-registered.meaning", "created-without-device.meaning",
    "never-moved.meaning", "stale-copy.meaning", "wrong-device.meaning", "host-boundary.meaning",
    "generator-device.meaning", "default-device.meaning", "attached-after-cast.meaning",
    "created-without-dtype.meaning", "never-cast.meaning", "wrong-dtype.meaning", "numpy-boundary.meaning",
    "autocast-off.meaning", "python-number.meaning", "target-dtype.meaning", "unknown.meaning",
    "device-mismatch.meaning", "dtype-mismatch.meaning", "host-conversion.meaning", "generator-mismatch.meaning",
    "device-refused.meaning", "out-of-memory.meaning", "host-sync.meaning", "host-to-device-copy.meaning",
    "device-to-host-copy.meaning", "device-to-device-copy.meaning", "cpu-compute.meaning", "split-module.meaning",
    "idle-optimizer.meaning", "memory-growth.meaning",
    "memory-peak.meaning", "device-comparison.meaning", "collective-device.meaning", "moved-after-wrap.meaning",
    "rank-device.meaning", "ranks-differ.meaning",
)  # fmt: skip
CREATED: Final = family(
    "*.created", "attached-after-move.created", "not-registered.created", "created-without-device.created",
    "never-moved.created", "stale-copy.created", "wrong-device.created", "host-boundary.created",
    "generator-device.created", "default-device.created", "attached-after-cast.created",
    "created-without-dtype.created", "never-cast.created", "wrong-dtype.created", "numpy-boundary.created",
    "autocast-off.created", "python-number.created", "target-dtype.created", "unknown.created",
)  # fmt: skip
"""Beside the line that created the tensor."""
ADVICE: Final = family(
    "*.advice", "attached-after-move.advice", "not-registered.advice", "created-without-device.advice",
    "never-moved.advice", "stale-copy.advice", "wrong-device.advice", "host-boundary.advice",
    "generator-device.advice", "default-device.advice", "attached-after-cast.advice", "created-without-dtype.advice",
    "never-cast.advice", "wrong-dtype.advice", "numpy-boundary.advice", "autocast-off.advice", "python-number.advice",
    "target-dtype.advice", "unknown.advice",
)  # fmt: skip
"""Where no edit fits."""
