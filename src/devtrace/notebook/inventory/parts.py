"""A model taken apart: its modules and tensors, what lies below each by device, and the parts that lie elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from devtrace.notebook.inventory.facts import UNKNOWN, Asker, Tally, Total, Totals
from devtrace.notebook.inventory.walk import is_a, may_lead
from devtrace.source.safe_values import instance_dict

_TABLES: Final = {"_parameters": "parameter", "_buffers": "buffer", "_modules": "module"}
_FIRST: Final = slice(0, 1000)  # of a plain list in a module, which should have been a ModuleList


@dataclass(slots=True)
class Part:
    """A module of a model, or a tensor that is not on the model's main device. `parent` is the number of the part
    around it, `home` says that something below it is on the main device, `totals` count the rest."""

    path: str
    kind: str  # "module", "parameter", "buffer"; "attribute" and "unregistered": what Module.to does not see
    value: Any
    parent: int
    home: bool = False
    totals: Totals = field(default_factory=dict)


def tensors_of(model: Any, asker: Asker) -> Iterator[Any]:
    """Each tensor of a model once; None at a step that found none."""
    seen = {id(model)}
    waiting = [model]
    while waiting:
        for _, _, value in _members(waiting.pop()):
            if id(value) in seen:
                continue
            if is_a(value, asker.tensor):
                seen.add(id(value))
                yield value
            elif is_a(value, asker.module):
                seen.add(id(value))
                waiting.append(value)
        yield None


def take_apart(model: Any, main: str, asker: Asker) -> Iterator[list[Part]]:
    """The parts of a model on several devices, each once, parents first. Yields the same list at every step; the last
    time, what a part says is true of all below it."""
    tally = Tally()
    seen = {id(model)}
    waiting = [Part("", "module", model, 0)]
    parts: list[Part] = []
    while waiting:
        module = waiting.pop()
        here = len(parts)
        parts.append(module)
        inner = []
        for name, kind, value in _members(module.value):
            if id(value) in seen:
                continue
            if is_a(value, asker.tensor):
                seen.add(id(value))
                facts = asker.facts(value)
                if facts.device == main:
                    module.home = True
                    continue
                parts.append(Part(_below(module, name), kind, value, here, totals={facts.device: Total()}))
                tally.add(value, facts, parts[-1].totals[facts.device])
            elif is_a(value, asker.module):
                seen.add(id(value))
                inner.append(Part(_below(module, name), kind, value, here))
        waiting += reversed(inner)
        yield parts
    _sum_up(parts)
    yield parts


def _below(module: Part, name: str) -> str:
    return f"{module.path}.{name}" if module.path else name


def _sum_up(parts: list[Part]) -> None:
    for part in reversed(parts[1:]):
        above = parts[part.parent]
        above.home |= part.home
        for device, total in part.totals.items():
            if device not in above.totals:
                above.totals[device] = Total()
            above.totals[device].add(total)


def main_device(totals: Totals) -> str:
    """The device of most tensors (a large embedding that was left behind is one), where there are several; else ""."""
    known = [device for device in totals if device != UNKNOWN]
    return max(known, key=lambda device: (totals[device].tensors, totals[device].parameters)) if len(known) > 1 else ""


def elsewhere(parts: list[Part]) -> list[Part]:
    """The largest parts that have nothing on the model's main device."""
    covered: set[int] = set()
    found = []
    for at, part in enumerate(parts):
        if at and part.parent in covered:
            covered.add(at)
        elif part.totals and not part.home and UNKNOWN not in part.totals:
            covered.add(at)
            found.append(part)
    return found


def _members(module: Any) -> Iterator[tuple[str, str, Any]]:
    """Name, kind and value of all that a module holds directly, or in a container that it holds."""
    own: Any = instance_dict(module)
    for table, kind in _TABLES.items():
        for key, value in _entries(dict.get(own, table)):
            yield key, kind, value
    for name in [name for name in list(dict.keys(own)) if type(name) is str and name[:1] != "_"]:
        held = dict.get(own, name)
        if not may_lead(held):
            continue
        if issubclass(type(held), (dict, list, tuple)):
            for key, value in _entries(held):
                yield f"{name}[{key}]", "unregistered", value
        else:
            yield name, "attribute", held


def _entries(held: Any) -> list[tuple[str, Any]]:
    if is_a(held, dict):
        return [(str(key), value) for key, value in list(dict.items(held)) if type(key) is str or type(key) is int]
    kind: Any = list if is_a(held, list) else tuple
    return [(str(at), value) for at, value in enumerate(kind.__getitem__(held, _FIRST))] if is_a(held, kind) else []
