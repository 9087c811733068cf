"""How simulated devices are asked for, known without torch: a command refuses what cannot be before anything runs."""

from __future__ import annotations

import re
from typing import Final

from devtrace.words.errors import SimulateError

MOST: Final = 16


def count_of(spec: object) -> int:
    """`cuda:2` -> 2; one sentence about what is accepted for anything else."""
    match = re.fullmatch(r"cuda:(\d{1,4})", spec) if isinstance(spec, str) else None
    count = int(match[1]) if match else 0
    if 1 <= count <= MOST:
        return count
    raise SimulateError(
        "simulate-devices",
        repr(spec),
        f'a number of CUDA devices is "cuda:1" to "cuda:{MOST}"',
        'write "cuda:2" for two of them',
    )
