"""Reads a request for simulated devices without torch, so that a command refuses a wrong one before anything runs.

count_of("cuda:2"), count_of("2"), count_of(2)      how many devices: two, named cuda:0 and cuda:1; "cuda" is one
limit_of("cuda:2,24GB")                             the bytes that each of them has
bound("cuda:0 <= 20GB")                             the most that a block may have of one
"""

import re
from typing import Final

from devtrace.words.catalogue import sentence
from devtrace.words.errors import SimulateError, UsageError

MOST: Final = 16
ONE_DEVICE: Final = "DEVTRACE_ONE_DEVICE"
"""Environment variable of the reference run of `devtrace fix`, and of the processes that it starts."""
NO_REAL_DEVICES: Final = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""}
"""Environment of a process that simulates where there are real devices, which a simulation does not hide unasked."""
_MOST_LISTED: Final = 3
_UNITS: Final = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}  # as the box of a card and nvidia-smi count
_AMOUNT: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([KMG])(?:i?B)?", re.IGNORECASE)
_BOUND: Final = re.compile(r"(cuda(?::\d+)?)\s*<=\s*(.+)")
_LEAST: Final = 2 << 20  # one segment


def count_of(spec: object) -> int:
    """Return 2 for `cuda:2` and for 2; raise one sentence about the accepted form for anything else."""
    devices, _ = _split_at_comma(spec)
    text = str(devices) if isinstance(devices, str | int) and not isinstance(devices, bool) else ""
    match = re.fullmatch(r"(?:cuda:)?(\d{1,4})|cuda", text)
    count = int(match[1] or 1) if match else 0
    if 1 <= count <= MOST:
        return count
    if text in ("cuda:0", "0"):
        raise SimulateError.of("simulate-devices.which", given=repr(spec), most=MOST)
    raise SimulateError.of("simulate-devices", given=repr(spec), most=MOST)


def spec_of(spec: object) -> str:
    """Return `cuda:2` for whatever asks for two devices, with the limit of each."""
    return f"cuda:{count_of(spec)}{_limit_text(limit_of(spec))}"


def limit_of(spec: object) -> int | None:
    """Return the bytes that each device has; None where the request gives no limit."""
    return _split_at_comma(spec)[1]


def names_of(spec: object) -> str:
    """Name the devices: "cuda:0, cuda:1 and cuda:2" for `cuda:3`."""
    names = [f"cuda:{index}" for index in range(count_of(spec))]
    if len(names) > _MOST_LISTED:
        return sentence("devices.range", first=names[0], last=names[-1])
    return sentence("devices.all", names=names)


def _split_at_comma(spec: object) -> tuple[object, int | None]:
    """Return what is before the comma, and the bytes that stand after it; None where there is no comma."""
    if not isinstance(spec, str) or "," not in spec:
        return spec, None
    devices, _, amount = spec.partition(",")
    limit = _bytes_of(amount)
    if limit < _LEAST:
        raise SimulateError.of("simulate-memory", given=repr(spec))
    return devices.strip(), limit


def bound(given: object) -> tuple[str, int]:
    """Return the device and the bytes of `cuda:0 <= 20GB`."""
    match = _BOUND.fullmatch(given.strip()) if isinstance(given, str) else None
    most = _bytes_of(match[2]) if match is not None else 0
    if match is None or not most:
        raise UsageError.of("expect-peak", given=repr(given))
    return match[1], most


def _bytes_of(amount: str) -> int:
    match = _AMOUNT.fullmatch(amount.strip())
    return int(float(match[1]) * _UNITS[match[2].upper()]) if match else 0


def _limit_text(limit: int | None) -> str:
    """Return `,24GB` for a limit, in the largest unit that tells it exactly; empty for none."""
    exact_units = [(size, name) for name, size in _UNITS.items() if limit is not None and limit % (size // 1024) == 0]
    size, name = max((each for each in exact_units if limit is not None and limit >= each[0]), default=(1, ""))
    return "" if limit is None else f",{limit / size:g}{name}B"
