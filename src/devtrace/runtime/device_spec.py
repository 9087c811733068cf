"""Reads a request for simulated devices without torch, so that a command refuses a wrong one before anything runs."""

from __future__ import annotations

import re
from typing import Final

from devtrace.words.errors import SimulateError

MOST: Final = 16


def count_of(spec: object) -> int:
    """Return 2 for `cuda:2`; raise one sentence about the accepted form for anything else."""
    match = re.fullmatch(r"cuda:(\d{1,4})", spec) if isinstance(spec, str) else None
    count = int(match[1]) if match else 0
    if 1 <= count <= MOST:
        return count
    raise SimulateError.of("simulate-devices", given=repr(spec), most=MOST)
