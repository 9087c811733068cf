"""A model taken apart: its modules and tensors, what lies below each by device, and the parts that lie elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from devtrace.notebook.inventory.tensor_info import UNKNOWN, Asker, DeviceTotals, Total, Totals
from devtrace.notebook.inventory.walk import is_a
from devtrace.source.object_walk import stored

MOST_ITEMS: Final = 1000
"""Items of a plain container in a module, which should have been a ModuleList."""


@dataclass(slots=True)
class Part:
    """A module of a model, or a tensor that is not on the model's main device.

    `parent` is the number of the part around it. `totals` count what lies below it on other devices than the main one.
    """

    path: str
    kind: str  # "module", "parameter", "buffer"; "attribute" and "unregistered": what Module.to does not see
    value: Any
    parent: int
    on_main_device: bool = False
    totals: Totals = field(default_factory=dict)


def tensors_of(model: Any, asker: Asker) -> Iterator[Any]:
    """Each tensor of a model once; None at a step that found none."""
    seen = {id(model)}
    waiting = [model]
    while waiting:
        for _, _, value in _parts_of(waiting.pop()):
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
    """Yield the parts of a model on several devices, each once, parents first.

    It is the same list at every step. At the last one each part counts all that lies below it.
    """
    counted = DeviceTotals()
    seen = {id(model)}
    waiting = [Part("", "module", model, 0)]
    parts: list[Part] = []
    while waiting:
        module = waiting.pop()
        here = len(parts)
        parts.append(module)
        inner = []
        for name, kind, value in _parts_of(module.value):
            if id(value) in seen:
                continue
            if is_a(value, asker.tensor):
                seen.add(id(value))
                info = asker.info(value)
                if info.device == main:
                    module.on_main_device = True
                    continue
                parts.append(Part(_below(module, name), kind, value, here, totals={info.device: Total()}))
                counted.add(value, info, parts[-1].totals[info.device])
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
        above.on_main_device |= part.on_main_device
        for device, total in part.totals.items():
            if device not in above.totals:
                above.totals[device] = Total()
            above.totals[device].add(total)


def main_device(totals: Totals) -> str:
    """Return the device of most tensors (a large embedding that was left behind is one), or "" if all share one."""
    known = [device for device in totals if device != UNKNOWN]
    return max(known, key=lambda device: (totals[device].tensors, totals[device].parameters)) if len(known) > 1 else ""


def elsewhere(parts: list[Part]) -> list[Part]:
    """Return the largest parts that have nothing on the model's main device."""
    covered: set[int] = set()
    found = []
    for at, part in enumerate(parts):
        if at and part.parent in covered:
            covered.add(at)
        elif part.totals and not part.on_main_device and UNKNOWN not in part.totals:
            covered.add(at)
            found.append(part)
    return found


def _parts_of(module: Any) -> Iterator[tuple[str, str, Any]]:
    """Yield name, kind and value of all that a module holds directly, or in a container that it holds."""
    for reference in stored(module):
        name, value = str(reference.key), reference.value
        if reference.kind != "attribute":
            yield name, reference.kind, value
        elif name[:1] != "_" and issubclass(type(value), (dict, list, tuple)):
            for inner in stored(value, MOST_ITEMS):
                yield f"{name}[{inner.key}]", "unregistered", inner.value
        elif name[:1] != "_":
            yield name, "attribute", value
