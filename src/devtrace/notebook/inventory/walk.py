"""The models, optimizers and tensors that names lead to, found without running a line of the user's code.

A walk from the notebook's names through lists, tuples, dictionaries and the attributes that objects store. It runs no
property, `__getattr__`, `__iter__`, `__repr__`, metaclass or `__torch_dispatch__` of anybody: hence `is`, the ids of
classes and `issubclass(type(x), T)`, where `==`, `in` and `isinstance` would ask them. torch is not imported: where the
user has not, there is nothing to find.

The walk is a generator with a step every few microseconds, so that the kernel can go on with it between two messages.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any, Final

from devtrace.source.safe_values import instance_dict

MOST_LOOKED_AT: Final = 50_000
"""Objects that one walk looks at; beyond them (a list of a million rows) nothing more is found."""
MOST_ITEMS: Final = 10_000
"""Entries of one container that are looked at."""
DEEPEST: Final = 3
"""Steps from a name: `trainer.models["a"][0]` is reached, what lies behind it is not."""
MOST_NAMES: Final = 5
"""Names that are kept for one object."""

_mro = type.__dict__["__mro__"].__get__
_name = type.__dict__["__name__"].__get__
_FIRST: Final = slice(0, MOST_ITEMS + 1)
_ATOMS: Final = frozenset(
    id(kind)
    for kind in (
        *(int, float, bool, complex, str, bytes, bytearray, type(None), type, range, slice),
        *(ModuleType, FunctionType, BuiltinFunctionType, MethodType, CodeType, FrameType),
    )
)


def classes(value: Any) -> tuple[type, ...]:
    """The classes of an object, its own first, without asking the object or its metaclass."""
    found: tuple[type, ...] = _mro(type(value))
    return found


def type_name(value: Any) -> str:
    return str(_name(type(value)))


def is_a(value: Any, kind: type) -> bool:
    return issubclass(type(value), kind)


@dataclass(slots=True)
class Holding:
    """One object, under the names that led to it, the shortest path first."""

    kind: str  # "model", "optimizer" or "tensor"
    value: Any
    names: list[str]


@dataclass(slots=True)
class Found:
    """What a walk has found. `left_out` says that it met one of its limits."""

    holdings: list[Holding] = field(default_factory=list)
    left_out: bool = False


def walk(names: Mapping[str, Any]) -> Iterator[Found]:
    """Find what the names hold, breadth first; yields the same object at every step, complete at the last."""
    found = Found()
    kinds = _kinds()
    seen: dict[int, Holding | None] = {}
    waiting = deque((name, value, 0) for name, value in list(names.items()) if may_lead(value))
    while waiting:
        name, value, depth = waiting.popleft()
        if id(value) in seen:
            _also(seen[id(value)], name)
            continue
        kind = next((kinds[id(base)] for base in classes(value) if id(base) in kinds), "")
        holding = seen[id(value)] = Holding(kind, value, [name]) if kind else None
        if holding is not None:
            found.holdings.append(holding)
        elif depth < DEEPEST:
            inner = _inside(name, value)
            waiting.extend((path, held, depth + 1) for path, held in inner[:MOST_ITEMS])
            found.left_out |= len(inner) > MOST_ITEMS
        if len(seen) >= MOST_LOOKED_AT:
            found.left_out = True
            break
        yield found
    yield found


def torch_is_here() -> bool:
    """Whether torch has been imported, to its end."""
    spec = getattr(sys.modules.get("torch"), "__spec__", None)
    return spec is not None and not getattr(spec, "_initializing", False)


def _kinds() -> dict[int, str]:
    """The classes to look for, by id."""
    torch: Any = sys.modules["torch"]
    return {id(torch.Tensor): "tensor", id(torch.nn.Module): "model", id(torch.optim.Optimizer): "optimizer"}


def _also(holding: Holding | None, name: str) -> None:
    if holding is not None and len(holding.names) < MOST_NAMES:
        holding.names.append(name)


def _inside(name: str, value: Any) -> list[tuple[str, Any]]:
    """What a container or an object holds that may be or lead to something, with its path."""
    if is_a(value, dict):
        entries = [(key, held) for key, held in list(dict.items(value)) if _plain(key) and may_lead(held)]
        return [(f"{name}[{key!r}]", held) for key, held in entries]
    if is_a(value, list) or is_a(value, tuple):
        kind: Any = list if is_a(value, list) else tuple
        items = enumerate(kind.__getitem__(value, _FIRST))
        return [(f"{name}[{at}]", held) for at, held in items if may_lead(held)]
    if is_a(value, type):
        return []
    return [(f"{name}.{key}", held) for key, held in stored(value) if may_lead(held)]


def stored(value: Any) -> list[tuple[str, Any]]:
    """The attributes that an object itself holds."""
    own: Any = instance_dict(value)
    entries = dict.items(own) if is_a(own, dict) else own.items()
    return [(key, held) for key, held in list(entries) if type(key) is str]


def _plain(key: Any) -> bool:
    return type(key) is str or type(key) is int


def may_lead(value: Any) -> bool:
    """Whether a value may be, or hold, what is looked for."""
    return id(type(value)) not in _ATOMS
