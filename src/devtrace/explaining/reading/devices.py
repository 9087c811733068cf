"""Names of devices: torch's own kinds, and the one that a backend outside of torch has registered."""

from __future__ import annotations

import re
from functools import cache
from typing import Final

import torch

HOST: Final = "cpu"
_KINDS: Final = ("cpu", "cuda", "meta", "mps", "xpu", "hpu", "npu", "xla")
_WITHOUT_INDEX: Final = ("cpu", "meta", "mps")
_METHODS: Final = frozenset(("to", "cpu", "type_as"))


def kinds() -> tuple[str, ...]:
    """Return all kinds of devices by name. A backend may be registered at any time."""
    return (*_KINDS, torch._C._get_privateuse1_backend_name())


def is_move(method: str) -> bool:
    """Return whether a method of tensors and modules moves: `to`, `cpu`, and one for each kind of device."""
    return method in _METHODS or method in kinds()


def in_full(device: str) -> str:
    """Return a device with its index: `cuda` is the first one."""
    return device if not device or ":" in device or device in _WITHOUT_INDEX else f"{device}:0"


def devices_named(text: str) -> list[str]:
    """Return the devices that torch's message names, in its order; of a tensor type (`torch.FloatTensor`) too."""
    found = [in_full(match[1] or match[2] or HOST) for match in _pattern(kinds()).finditer(text)]
    return list(dict.fromkeys(found))


@cache
def _pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    kind = "|".join(map(re.escape, names))
    return re.compile(rf"\b((?:{kind})(?::\d+)?)\b|torch\.(?:({kind})\.)?\w+Tensor")
