"""A random generator was made for another device; the rule generator-mismatch claims it."""

from devtrace.diagnosis.causes.cause import Cause

CAUSE = Cause(
    slug="generator-device",
)
