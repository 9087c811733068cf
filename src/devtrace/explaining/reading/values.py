"""Values of expressions that are read: tensors as rows, live objects, and sequences of such."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(eq=False, slots=True)
class ReadOp:
    """An op before the failed one. `depth`: the level of the stack in whose call it ran; of a move of long ago `tick`.

    `module` is the one in whose call it ran, if no frame shows that; `owner` the one whose method has its line.
    `is_seen`: the hooks saw it; all others were read from the source. `is_believed`: what is there came of it.
    """

    name: str
    kind: int
    site: int
    inputs: list[int]
    row: int
    layout: int
    depth: int
    module: Any = None
    owner: Any = None
    tick: float = 0
    is_seen: bool = False
    is_believed: bool = False


@dataclass(eq=False, slots=True)
class TensorValue:
    """A tensor: a `live` one, or one that is gone, of which the source gives the device and the `op` that made it."""

    row: int
    device: str
    dims: int = 1
    op: ReadOp | None = None
    live: Any = None


@dataclass(frozen=True, slots=True)
class Known:
    """A live object, or a constant, that is no tensor."""

    value: Any


@dataclass(frozen=True, slots=True)
class Several:
    """A sequence or a dictionary that is gone, by its items; an item that is not known is None."""

    items: tuple[Value | None, ...]
    keys: tuple[Any, ...] = ()

    def item(self, key: Any) -> Value | None:
        if self.keys:
            return self.items[self.keys.index(key)] if key in self.keys else None
        is_index = type(key) is int and -len(self.items) <= key < len(self.items)
        return self.items[key] if is_index else None


Value = TensorValue | Known | Several


def tensors_of(value: Value | None) -> Iterator[TensorValue]:
    """Yield the tensors of a value, those in sequences among them."""
    if isinstance(value, TensorValue):
        yield value
    elif isinstance(value, Several):
        for item in value.items:
            yield from tensors_of(item)
