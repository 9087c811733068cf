"""What a notebook's names hold, by device: the sidebar's Devices section.

    steps = listing(namespace, simulated=False)      # a generator: one short step at a time, for the kernel's idle time

It changes nothing, reads no tensor's data and runs no line of the user's code. The bytes of a tensor are those of its
storage, which is what it keeps alive; each total counts a storage once, however many views, models and names share it.
A model on several devices is taken apart: which of its modules and tensors lie elsewhere.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from devtrace.features import find
from devtrace.notebook.inventory.tensor_info import UNKNOWN, Asker, DeviceTotals, Totals
from devtrace.notebook.inventory.walk import NamedObject, is_a, type_name, walk
from devtrace.runtime.import_hook import ImportWatcher
from devtrace.source.object_walk import parameters_of, states_of, stored
from devtrace.words.catalogue import sentence

MOST_ROWS: Final = 300
"""Rows that are sent, the largest first: more of them nobody reads, and the panel draws all that it gets."""
MOST_PARTS: Final = 50
"""Parts of one mixed model that are sent."""
MOST_ITEMS: Final = 1000
"""Items of a plain container in a module, which should have been a ModuleList."""

FEW: Final = 8
"""Tensors of one list that are listed one by one."""
_ITEM: Final = re.compile(r"(.*)\[\d+\]")

Row = dict[str, Any]
Steps = Generator[None, None, Row]


def drain(steps: Steps) -> Row:
    """Run a listing to its end at once."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            row: Row = end.value
            return row


def listing(namespace: Mapping[str, Any], *, simulated: bool = False) -> Steps:
    """List what the names hold; yields between steps."""
    rows: list[Row] = []
    left_out = False
    all_totals = DeviceTotals()
    ended: set[str] = set()
    if ImportWatcher("torch").is_imported:
        holdings, left_out = yield from walk(namespace)
        asker = Asker()
        ended = asker.ended
        for holding in _lists_as_one(holdings):
            rows.append((yield from _ROWS[holding.kind](holding, asker, all_totals)))
            yield
    rows.sort(key=lambda row: (not row.get("parts"), -sum(device["bytes"] for device in row["devices"])))
    return {
        "devices": [
            {"simulated": row["device"] in ended or (simulated and row["device"].startswith("cuda")), **row}
            for row in _by_device(all_totals.by_device)
        ],
        "holdings": rows[:MOST_ROWS],
        "left_out": max(0, len(rows) - MOST_ROWS),
        "cut": left_out,
    }


def _lists_as_one(holdings: list[NamedObject]) -> list[NamedObject]:
    """Replace thousands of `losses[17]`, the tensors of a long list, by one holding `losses`."""
    items: dict[str, list[NamedObject]] = defaultdict(list)
    for holding in holdings:
        if holding.kind == "tensor" and (match := _ITEM.fullmatch(holding.names[0])):
            items[match[1]].append(holding)
    long = {name: tensors for name, tensors in items.items() if len(tensors) > FEW}
    folded = {id(holding) for tensors in long.values() for holding in tensors}
    others = [holding for holding in holdings if id(holding) not in folded]
    return [*others, *(NamedObject("tensors", [item.value for item in long[name]], [name]) for name in long)]


def _tensor_row(holding: NamedObject, asker: Asker, all_totals: DeviceTotals) -> Steps:
    """List a tensor, or those of a long list."""
    totals, is_one = DeviceTotals(), holding.kind == "tensor"
    yield from _count_in_steps([holding.value] if is_one else holding.value, asker, totals, all_totals)
    if is_one:
        return _common_fields(holding, totals.by_device) | _shape_and_dtype(holding.value, asker)
    description = {"kind": "tensor", "type": sentence("inventory.tensors", count=len(holding.value))}
    return _common_fields(holding, totals.by_device) | description


def _optimizer_row(holding: NamedObject, asker: Asker, all_totals: DeviceTotals) -> Steps:
    """List an optimizer with the bytes of its state; those of its parameters count for the model that has them.

    Adam counts its steps in a number on the CPU: this alone does not make it an optimizer on several devices.
    """
    totals = DeviceTotals()
    yield from _count_in_steps(parameters_of(holding.value), asker, totals, all_totals)
    parameter_devices = frozenset(totals.by_device)
    for total in totals.by_device.values():
        total["bytes"] = 0
    for _, _, tensor in states_of(holding.value):
        info = asker.info(tensor) if is_a(tensor, asker.tensor) else None
        is_number = info is not None and not info.shape and info.device not in parameter_devices
        yield from _count_in_steps([tensor], asker, *([] if is_number else [totals]), all_totals)
    return _common_fields(holding, totals.by_device)


def _count_in_steps(tensors: Iterable[Any], asker: Asker, *totals: DeviceTotals) -> Iterator[None]:
    for tensor in tensors:
        if is_a(tensor, asker.tensor):
            info = asker.info(tensor)
            for total in totals:
                total.count(tensor, info, total.by_device)
        yield  # a step: the listing may pause here


def _model_row(holding: NamedObject, asker: Asker, all_totals: DeviceTotals) -> Steps:
    totals = DeviceTotals()
    for _, tensors in _modules(holding.value, asker):
        yield from _count_in_steps((value for _, _, value in tensors), asker, totals, all_totals)
        yield
    row = _common_fields(holding, totals.by_device)
    if main := _main_device(totals.by_device):
        parts = _largest_apart((yield from _parts_of_model(holding.value, main, asker)))
        row["main"] = main
        row["parts"] = [_part_row(part, asker) for part in parts[:MOST_PARTS]]
        row["parts_left_out"] = max(0, len(parts) - MOST_PARTS)
    return row


def _part_row(part: _Part, asker: Asker) -> Row:
    devices = _by_device(part.totals)
    row = {"path": part.path, "kind": part.kind, "type": type_name(part.value), "devices": devices}
    return row | _shape_and_dtype(part.value, asker) if is_a(part.value, asker.tensor) else row


def _common_fields(holding: NamedObject, totals: Totals) -> Row:
    return {
        "kind": holding.kind,
        "name": holding.names[0],
        "names": holding.names[1:],
        "type": type_name(holding.value),
        "devices": _by_device(totals),
    }


def _shape_and_dtype(tensor: Any, asker: Asker) -> Row:
    info = asker.info(tensor)
    return {"shape": list(info.shape), "dtype": info.dtype}


def _by_device(totals: Totals) -> list[Row]:
    """List totals in the order in which devices are shown: the CPU first."""
    in_order = sorted(totals.items(), key=lambda item: (item[0] != "cpu", item[0]))
    return [{"device": device, **total} for device, total in in_order]


_ROWS: Final = {"tensor": _tensor_row, "tensors": _tensor_row, "optimizer": _optimizer_row, "model": _model_row}


@dataclass(slots=True)
class _Part:
    """A module of a model, or a tensor that is not on the model's main device.

    `totals` count what lies below it on other devices than the main one.
    """

    path: str
    kind: str  # "module", "parameter", "buffer"; "attribute" and "unregistered": what Module.to does not see
    value: Any
    above: _Part | None
    on_main_device: bool = False
    totals: Totals = field(default_factory=lambda: defaultdict(Counter))


def _parts_of_model(model: Any, main: str, asker: Asker) -> Generator[None, None, list[_Part]]:
    """Return the parts of a model on several devices, parents first. The totals of a part include all below it."""
    parts: list[_Part] = []
    counted = DeviceTotals()
    for module, tensors in _modules(model, asker):
        parts.append(module)
        for path, kind, tensor in tensors:
            info = asker.info(tensor)
            if info.device == main:
                module.on_main_device = True
            else:
                parts.append(_Part(path, kind, tensor, module))
                counted.count(tensor, info, parts[-1].totals)
        yield
    for part in reversed(parts):
        if part.above is not None:
            part.above.on_main_device |= part.on_main_device
            for device, total in part.totals.items():
                part.above.totals[device].update(total)
    return parts


def _modules(model: Any, asker: Asker) -> Iterator[tuple[_Part, list[tuple[str, str, Any]]]]:
    """Yield each module of a model once, parents first, with path, kind and value of its tensors."""
    visited = {id(model)}
    waiting = [_Part("", "module", model, None)]
    while waiting:
        module = waiting.pop()
        tensors, submodules = [], []
        for name, kind, value in _stored_in(module.value):
            is_tensor = is_a(value, asker.tensor)
            if id(value) in visited or not (is_tensor or is_a(value, asker.module)):
                continue
            visited.add(id(value))
            path = f"{module.path}.{name}" if module.path else name
            if is_tensor:
                tensors.append((path, kind, value))
            else:
                submodules.append(_Part(path, kind, value, module))
        waiting += reversed(submodules)
        yield module, tensors


def _stored_in(module: Any) -> Iterator[tuple[str, str, Any]]:
    """Yield name, kind and value of all that a module stores in an attribute or in a container there."""
    for reference in stored(module):
        name, value = str(reference.key), reference.value
        if reference.kind != "attribute":
            yield name, reference.kind, value
        elif name[:1] != "_" and issubclass(type(value), (dict, list, tuple)):
            for item in stored(value, MOST_ITEMS):
                yield f"{name}[{item.key}]", "unregistered", item.value
        elif name[:1] != "_":
            yield name, "attribute", value


def _main_device(totals: Totals) -> str:
    """Return the device of most tensors (a large embedding that was left behind is one), or "" if all share one."""
    known = [device for device in totals if device != UNKNOWN]
    most = max(known, key=lambda device: (totals[device]["tensors"], totals[device]["parameters"]), default="")
    return most if len(known) > 1 else ""


def _largest_apart(parts: list[_Part]) -> list[_Part]:
    """Return the parts that have nothing on the main device, without the parts inside of them."""
    covered: set[int] = set()
    largest = []
    for part in parts:
        if id(part.above) in covered:
            covered.add(id(part))
        elif part.totals and not part.on_main_device and UNKNOWN not in part.totals:
            covered.add(id(part))
            largest.append(part)
    return largest


def whole_listing(names: Mapping[str, Any], *, simulated: bool) -> Steps:
    """List what names hold, with what a feature adds for each device."""
    steps: Steps = (find("inventory", "memory") or listing)(names, simulated=simulated)
    return steps
