"""The colours of devices, from the one table that both languages draw by."""

import re
from typing import Any, Final, Literal, NamedTuple, cast

from devtrace.runtime.tables import json_of

Theme = Literal["light", "dark"]

KINDS: Final = ("cpu", "cuda", "mps", "xpu", "other", "meta")
"""The order in which lanes and legends name devices; "other" is an accelerator that torch alone knows by name."""
_TABLE: Final[dict[str, Any]] = json_of("report/palette.json")


class Shade(NamedTuple):
    """A device as drawn: its fill, the ink readable on it, and a letter and hatch for readers who see no colour."""

    fill: str
    ink: str
    hatch: str
    letter: str


def shade(device: str, theme: Theme = "light") -> Shade:
    kind, index = split(device)
    steps = _TABLE["kinds"][kind]["steps"]
    step = steps[index % len(steps)]
    letter = _TABLE["kinds"][kind]["letter"] + (device.partition(":")[2] if kind != "cpu" else "")
    return Shade(step[theme], step[f"{theme}_ink"], step["hatch"], letter[:4])


def severity(name: str, theme: Theme = "light") -> str:
    return cast(str, _TABLE["severity"][name][theme])


def sign(name: str) -> str:
    return cast(str, _TABLE["severity"][name]["sign"])


def order(device: str) -> tuple[int, int, str]:
    """Return a sort key: the CPU first, then each kind by index."""
    kind, index = split(device)
    return KINDS.index(kind), index, device


def split(device: str) -> tuple[str, int]:
    """Split "cuda:1" into ("cuda", 1); a kind without a colour of its own is "other"."""
    kind, _, index = device.partition(":")
    number = int(index) if re.fullmatch(r"[0-9]{1,6}", index) else 0
    return (kind if kind in KINDS else "other"), number
