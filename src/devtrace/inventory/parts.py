"""A model taken apart: its modules and tensors, what lies below each by device, and the parts that lie elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from devtrace.inventory.facts import UNKNOWN, Asker, Tally, Total, Totals
from devtrace.inventory.walk import is_a, may_lead, stored

_TABLES: Final = {"_parameters": "parameter", "_buffers": "buffer", "_modules": "module"}
_FIRST: Final = slice(0, 1000)  # of a plain list in a module, which should have been a ModuleList


@dataclass(slots=True)
class Part:
    """A module of a model or a tensor that it holds. `parent` is the number of the part around it."""

    path: str
    kind: str  # "module", "parameter", "buffer"; "attribute" and "unregistered": what Module.to does not see
    value: Any
    parent: int
    totals: Totals = field(default_factory=dict)


def take_apart(model: Any, asker: Asker) -> Iterator[list[Part]]:
    """Each module and tensor of a model once, parents first. Yields the same list at every step; the last time, the
    totals of a part are those of all below it."""
    kinds = (asker.module, asker.tensor)
    tally = Tally()
    seen = {id(model)}
    waiting = [Part("", "module", model, 0)]
    parts: list[Part] = []
    while waiting:
        part = waiting.pop()
        if issubclass(type(part.value), asker.module):
            members = [member for member in _members(part.value) if issubclass(type(member[2]), kinds)]
            for name, kind, value in reversed(members):
                if id(value) not in seen:
                    seen.add(id(value))
                    waiting.append(Part(f"{part.path}.{name}" if part.path else name, kind, value, len(parts)))
        else:
            facts = asker.facts(part.value)
            part.totals[facts.device] = tally.new(part.value, facts)
        parts.append(part)
        yield parts
    _sum_up(parts)
    yield parts


def _sum_up(parts: list[Part]) -> None:
    for part in reversed(parts[1:]):
        above = parts[part.parent].totals
        for device, total in part.totals.items():
            if device not in above:
                above[device] = Total()
            above[device].add(total)


def main_device(totals: Totals) -> str:
    """The device of most tensors (a large embedding that was left behind is one), where there are several; else ""."""
    known = [device for device in totals if device != UNKNOWN]
    return max(known, key=lambda device: (totals[device].tensors, totals[device].parameters)) if len(known) > 1 else ""


def elsewhere(parts: list[Part], main: str) -> list[Part]:
    """The largest parts that have nothing on the model's main device."""
    covered: set[int] = set()
    found = []
    for at, part in enumerate(parts):
        if at and part.parent in covered:
            covered.add(at)
        elif part.totals and main not in part.totals and UNKNOWN not in part.totals:
            covered.add(at)
            found.append(part)
    return found


def _members(module: Any) -> Iterator[tuple[str, str, Any]]:
    """Name, kind and value of all that a module holds directly, or in a container that it holds."""
    for name, held in stored(module):
        if name[:1] == "_":
            if kind := _TABLES.get(name, ""):
                yield from ((key, kind, value) for key, value in _entries(held))
        elif not may_lead(held):
            continue
        elif issubclass(type(held), (dict, list, tuple)):
            yield from ((f"{name}[{key}]", "unregistered", value) for key, value in _entries(held))
        else:
            yield name, "attribute", held


def _entries(held: Any) -> list[tuple[str, Any]]:
    if is_a(held, dict):
        return [(str(key), value) for key, value in list(dict.items(held)) if type(key) is str or type(key) is int]
    kind: Any = list if is_a(held, list) else tuple
    return [(str(at), value) for at, value in enumerate(kind.__getitem__(held, _FIRST))] if is_a(held, kind) else []
