"""Reads a request for simulated devices without torch, so that a command refuses a wrong one before anything runs.

count_of("cuda:2"), count_of("2"), count_of(2)      how many devices: two, named cuda:0 and cuda:1; "cuda" is one
limit_of("cuda:2,24GB")                             the bytes that each of them has
"""

import re
from typing import Final

from devtrace.runtime import size_limits
from devtrace.words.catalogue import sentence
from devtrace.words.errors import SimulateError

MOST: Final = 16
ONE_DEVICE: Final = "DEVTRACE_ONE_DEVICE"
"""Environment variable of the reference run of `devtrace fix`, and of the processes that it starts."""
NO_REAL_DEVICES: Final = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""}
"""Environment of a process that simulates where there are real devices, which a simulation does not hide unasked."""
_MOST_LISTED: Final = 3


def count_of(spec: object) -> int:
    """Return 2 for `cuda:2` and for 2; raise one sentence about the accepted form for anything else."""
    devices, _ = size_limits.parted(spec)
    given = str(devices) if isinstance(devices, str | int) and not isinstance(devices, bool) else ""
    match = re.fullmatch(r"(?:cuda:)?(\d{1,4})|cuda", given)
    count = int(match[1] or 1) if match else 0
    if 1 <= count <= MOST:
        return count
    if given in ("cuda:0", "0"):
        raise SimulateError.of("simulate-devices.which", given=repr(spec), most=MOST)
    raise SimulateError.of("simulate-devices", given=repr(spec), most=MOST)


def spec_of(spec: object) -> str:
    """Return `cuda:2` for whatever asks for two devices, with the limit of each."""
    return f"cuda:{count_of(spec)}{size_limits.written(limit_of(spec))}"


def limit_of(spec: object) -> int | None:
    """Return the bytes that each device has; None where the request gives no limit."""
    return size_limits.parted(spec)[1]


def with_room(spec: object) -> str:
    """Return `cuda:2` for `cuda:2,24GB`: as many devices, with as much memory as a program asks for."""
    return f"cuda:{count_of(spec)}"


def names_of(spec: object) -> str:
    """Name the devices: "cuda:0, cuda:1 and cuda:2" for `cuda:3`."""
    names = [f"cuda:{index}" for index in range(count_of(spec))]
    if len(names) > _MOST_LISTED:
        return sentence("devices.range", first=names[0], last=names[-1])
    return sentence("devices.all", names=names)
