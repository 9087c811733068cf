"""The rules for errors, in the order in which they are asked. An explanation needs no others."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from devtrace.diagnosis.evidence.failure_snapshot import FailureSnapshot
from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.diagnosis.findings import Finding
from devtrace.diagnosis.rules.device_mismatch import device_mismatch
from devtrace.diagnosis.rules.device_refused import device_refused
from devtrace.diagnosis.rules.generator_mismatch import generator_mismatch
from devtrace.diagnosis.rules.host_conversion import host_conversion
from devtrace.features import offers
from devtrace.trace.ids import OpId

Explain = Callable[[TraceQueries, FailureSnapshot, OpId, str], Finding | None]
"""Explains an op that raised, by torch's message; None where the error is of another rule."""

OF_DEVICES: Final[Mapping[str, Explain]] = {
    "device-refused": device_refused,
    "host-conversion": host_conversion,
    "generator-mismatch": generator_mismatch,
    "device-mismatch": device_mismatch,
}


def error_rules() -> Iterator[Explain]:
    """Yield the rules of features, and then those of devices, which take what is left."""
    yield from (load() for load in offers("error rule").values())
    yield from OF_DEVICES.values()
