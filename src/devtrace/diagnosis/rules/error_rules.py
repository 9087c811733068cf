"""The rules for errors, in the order in which they are asked. An explanation needs no others."""

from typing import Final

from devtrace.diagnosis.memory.out_of_memory import out_of_memory
from devtrace.diagnosis.rules import (
    collective_device,
    device_mismatch,
    device_refused,
    dtype_mismatch,
    generator_mismatch,
    host_conversion,
)
from devtrace.diagnosis.rules.rule import ErrorRule

ERROR_RULES: Final[tuple[ErrorRule, ...]] = (
    ErrorRule("out-of-memory", out_of_memory),
    dtype_mismatch.RULE,
    collective_device.RULE,
    device_refused.RULE,
    host_conversion.RULE,
    generator_mismatch.RULE,
    device_mismatch.RULE,
)
