"""The models, optimizers and tensors that names lead to, found without running a line of the user's code.

The walk goes from the notebook's names through containers and the attributes that objects store. torch is not imported:
where the user has not, there is nothing to find.

The walk is a generator with a step every few microseconds, so that the kernel can go on with it between two messages.
"""

import sys
from collections import deque
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from types import FunctionType, MethodType
from typing import Any, Final

from devtrace.source.object_walk import may_lead, stored
from devtrace.source.safe_values import classes_of

MOST_LOOKED_AT: Final = 50_000
"""Objects that one walk looks at; beyond them (a list of a million rows) nothing more is found."""
MOST_ITEMS: Final = 10_000
"""Entries of one container that are looked at."""
DEEPEST: Final = 3
"""Steps from a name: `trainer.models["a"][0]` is reached, what lies behind it is not."""
MOST_NAMES: Final = 5
"""Names that are kept for one object."""

_name: Final = type.__dict__["__name__"].__get__
_NOT_FOLLOWED: Final = (type, FunctionType, MethodType)


def type_name(value: Any) -> str:
    return str(_name(type(value)))


def is_a(value: Any, kind: type) -> bool:
    return issubclass(type(value), kind)


@dataclass(slots=True)
class NamedObject:
    """One object, under the names that led to it, the shortest path first."""

    kind: str  # "model", "optimizer" or "tensor"
    value: Any
    names: list[str]


def walk(names: Mapping[str, Any]) -> Generator[None, None, tuple[list[NamedObject], bool]]:
    """Return what the names hold, breadth first, and whether the walk reached one of its limits."""
    holdings: list[NamedObject] = []
    left_out = False
    torch: Any = sys.modules["torch"]
    kinds = {id(torch.Tensor): "tensor", id(torch.nn.Module): "model", id(torch.optim.Optimizer): "optimizer"}
    seen: dict[int, NamedObject | None] = {}
    waiting = deque((name, value, 0) for name, value in list(names.items()) if may_lead(value))
    while waiting:
        name, value, depth = waiting.popleft()
        if id(value) in seen:
            same = seen[id(value)]
            if same is not None and len(same.names) < MOST_NAMES:
                same.names.append(name)
            continue
        kind = next((kinds[id(base)] for base in classes_of(type(value)) if id(base) in kinds), "")
        holding = seen[id(value)] = NamedObject(kind, value, [name]) if kind else None
        if holding is not None:
            holdings.append(holding)
        elif depth < DEEPEST and not issubclass(type(value), _NOT_FOLLOWED):
            inner = list(stored(value, MOST_ITEMS + 1))
            steps = [(f"[{item.key!r}]" if item.kind == "item" else item.text, item.value) for item in inner]
            waiting.extend((f"{name}{step}", item, depth + 1) for step, item in steps[:MOST_ITEMS])
            left_out |= len(inner) > MOST_ITEMS
        if len(seen) >= MOST_LOOKED_AT:
            return holdings, True
        yield
    return holdings, left_out
