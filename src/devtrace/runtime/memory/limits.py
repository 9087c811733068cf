"""Reads how much memory each simulated device shall have: the `24GB` of `cuda:1,24GB`."""

import re
from typing import Final

from devtrace.words.errors import SimulateError

_UNITS: Final = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}  # as the box of a card and nvidia-smi count
_AMOUNT: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([KMG])(?:i?B)?", re.IGNORECASE)
_LEAST: Final = 2 << 20  # one segment


def parted(spec: object) -> tuple[object, int | None]:
    """Return what is before the comma, and the bytes that stand after it; None where there is no comma."""
    if not isinstance(spec, str) or "," not in spec:
        return spec, None
    devices, _, amount = spec.partition(",")
    found = _AMOUNT.fullmatch(amount.strip())
    limit = int(float(found[1]) * _UNITS[found[2].upper()]) if found else 0
    if limit < _LEAST:
        raise SimulateError.of("simulate-memory", given=repr(spec))
    return devices.strip(), limit


def written(limit: int | None) -> str:
    """Return `,24GB` for a limit, in the largest unit that tells it exactly; empty for none."""
    units = [(size, name) for name, size in _UNITS.items() if limit is not None and limit % (size // 1024) == 0]
    size, name = max((each for each in units if limit is not None and limit >= each[0]), default=(1, ""))
    return "" if limit is None else f",{limit / size:g}{name}B"
