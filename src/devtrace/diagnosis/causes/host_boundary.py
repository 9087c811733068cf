"""numpy, Python or a file takes tensors on the CPU only; the rule host-conversion claims it."""

from __future__ import annotations

from devtrace.diagnosis.causes.cause import Cause

CAUSE = Cause(
    slug="host-boundary",
    meaning="numpy, Python or a file wants the tensor on the CPU",
    what_helps="`.detach().cpu()` first",
    born_remark="on the device",
    advice="bring it to the host first: x.cpu().numpy()",
)
