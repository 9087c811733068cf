"""Reads amounts of memory: the `24GB` that a simulated device has in `cuda:1,24GB`, and a bound, `cuda:0 <= 20GB`."""

import re
from typing import Final

from devtrace.words.errors import SimulateError, UsageError

_UNITS: Final = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}  # as the box of a card and nvidia-smi count
_AMOUNT: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([KMG])(?:i?B)?", re.IGNORECASE)
_BOUND: Final = re.compile(r"(cuda(?::\d+)?)\s*<=\s*(.+)")
_LEAST: Final = 2 << 20  # one segment


def parted(spec: object) -> tuple[object, int | None]:
    """Return what is before the comma, and the bytes that stand after it; None where there is no comma."""
    if not isinstance(spec, str) or "," not in spec:
        return spec, None
    devices, _, amount = spec.partition(",")
    limit = _bytes(amount)
    if limit < _LEAST:
        raise SimulateError.of("simulate-memory", given=repr(spec))
    return devices.strip(), limit


def bound(given: object) -> tuple[str, int]:
    """Return the device and the bytes of `cuda:0 <= 20GB`."""
    found = _BOUND.fullmatch(given.strip()) if isinstance(given, str) else None
    most = _bytes(found[2]) if found is not None else 0
    if found is None or not most:
        raise UsageError.of("expect-peak", given=repr(given))
    return found[1], most


def _bytes(amount: str) -> int:
    found = _AMOUNT.fullmatch(amount.strip())
    return int(float(found[1]) * _UNITS[found[2].upper()]) if found else 0


def written(limit: int | None) -> str:
    """Return `,24GB` for a limit, in the largest unit that tells it exactly; empty for none."""
    units = [(size, name) for name, size in _UNITS.items() if limit is not None and limit % (size // 1024) == 0]
    size, name = max((each for each in units if limit is not None and limit >= each[0]), default=(1, ""))
    return "" if limit is None else f",{limit / size:g}{name}B"
