"""Tensors whose device is settled only after the op that made them: `torch.FloatTensor(2, 3)` of a simulated device."""

from collections.abc import Callable
from typing import Any, Final

listeners: Final[list[Callable[[Any], None]]] = []


def has_settled(tensor: Any) -> None:
    """Tell whoever noted the tensor's device before."""
    for listener in listeners:
        listener(tensor)
