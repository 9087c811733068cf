"""numpy, Python or a file takes tensors on the CPU only; the rule host-conversion claims it."""

from devtrace.diagnosis.causes.cause import Cause

CAUSE = Cause(
    slug="host-boundary",
)
