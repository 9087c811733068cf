"""A random generator was made for another device; the rule generator-mismatch claims it."""

from __future__ import annotations

from devtrace.diagnosis.causes.cause import Cause

CAUSE = Cause(
    slug="generator-device",
    meaning="the generator was made for another device",
    what_helps="`torch.Generator(device=...)`",
    born_remark="on this device",
    advice="make the generator on the device of the numbers: torch.Generator(device=...)",
)
