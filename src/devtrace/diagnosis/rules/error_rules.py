"""The rules for errors, in the order in which they are asked. An explanation needs no others."""

from collections.abc import Callable, Mapping
from typing import Final

from devtrace.diagnosis.evidence.failure_snapshot import FailureSnapshot
from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.diagnosis.findings import Finding
from devtrace.diagnosis.rules.device_mismatch import device_mismatch
from devtrace.diagnosis.rules.device_refused import device_refused
from devtrace.diagnosis.rules.generator_mismatch import generator_mismatch
from devtrace.diagnosis.rules.host_conversion import host_conversion
from devtrace.diagnosis.slugs import RuleSlug
from devtrace.dtypes.rule import dtype_mismatch
from devtrace.jobs.rules.collective_device import refused_by_nccl
from devtrace.memory.rules.out_of_memory import out_of_memory

ERROR_RULES: Final[Mapping[RuleSlug, Callable[[TraceQueries, FailureSnapshot, int, str], Finding | None]]] = {
    "out-of-memory": out_of_memory,
    "dtype-mismatch": dtype_mismatch,
    "collective-device": refused_by_nccl,
    "device-refused": device_refused,
    "host-conversion": host_conversion,
    "generator-mismatch": generator_mismatch,
    "device-mismatch": device_mismatch,
}
"""Each explains an op that raised, by torch's message; None where the error is of another rule."""
