"""What a notebook's names hold, by device: the sidebar's Devices section.

    steps = listing(namespace, simulated=False)      # a generator: one short step at a time, for the kernel's idle time
    listed = drain(steps)                            # to its end: the object that is sent to the panel

It changes nothing, reads no tensor's data and runs no line of the user's code. The bytes of a tensor are those of its
storage, which is what it keeps alive; each total counts a storage once, however many views, models and names share it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import Any, Final

from devtrace.notebook.inventory.parts import Part, elsewhere, main_device, take_apart, tensors_of
from devtrace.notebook.inventory.tensor_info import UNKNOWN, Asker, DeviceTotals, Total, Totals
from devtrace.notebook.inventory.walk import Found, Holding, is_a, torch_is_here, type_name, walk
from devtrace.source.safe_values import instance_dict

__all__ = ["MOST_ROWS", "UNKNOWN", "Steps", "drain", "listing"]

MOST_ROWS: Final = 2_000
"""Rows that are sent, the largest first: 400 KB of JSON, written in 5 ms."""
MOST_PARTS: Final = 50
"""Parts of one mixed model that are sent."""

Row = dict[str, Any]
Steps = Generator[None, None, Row]


def drain(steps: Steps) -> Row:
    """Run a listing to its end."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            row: Row = end.value
            return row


def listing(namespace: Mapping[str, Any], *, simulated: bool = False) -> Steps:
    """List what the names hold; yields between steps."""
    found = Found()
    rows: list[Row] = []
    all_totals = DeviceTotals()
    if torch_is_here():
        for found in walk(namespace):  # noqa: B007 (read below, when it is complete)
            yield
        asker = Asker()
        for holding in found.holdings:
            rows.append((yield from _ROWS[holding.kind](holding, asker, all_totals)))
            yield
    rows.sort(key=lambda row: (not row.get("parts"), -sum(device["bytes"] for device in row["devices"])))
    return {
        "devices": [
            {"simulated": simulated and row["device"].startswith("cuda"), **row}
            for row in _by_device(all_totals.by_device)
        ],
        "holdings": rows[:MOST_ROWS],
        "left_out": max(0, len(rows) - MOST_ROWS),
        "cut": found.left_out,
    }


def _tensor_row(holding: Holding, asker: Asker, all_totals: DeviceTotals) -> Steps:
    info = asker.info(holding.value)
    all_totals.count(holding.value, info)
    totals = {info.device: Total(1, info.parameters, info.bytes)}
    yield
    return {**_head(holding, totals), "shape": list(info.shape), "dtype": info.dtype}


def _optimizer_row(holding: Holding, asker: Asker, all_totals: DeviceTotals) -> Steps:
    """List an optimizer: its own tensors are its state, the bytes of the parameters that it steps are theirs."""
    own, totals = instance_dict(holding.value), DeviceTotals()
    yield from _count(_parameters(own.get("param_groups")), asker, totals, all_totals)
    for total in totals.by_device.values():
        total.bytes = 0
    yield from _count(_state(own.get("state")), asker, totals, all_totals)
    return _head(holding, totals.by_device)


def _count(tensors: Iterable[Any], asker: Asker, *totals: DeviceTotals) -> Iterator[None]:
    for tensor in tensors:
        if is_a(tensor, asker.tensor):
            info = asker.info(tensor)
            for each in totals:
                each.count(tensor, info)
        yield


def _parameters(groups: Any) -> Iterator[Any]:
    for group in list(groups) if type(groups) is list else ():
        parameters = dict.get(group, "params") if is_a(group, dict) else None
        yield from parameters if type(parameters) is list else ()


def _state(state: Any) -> Iterator[Any]:
    for kept in list(dict.values(state)) if is_a(state, dict) else ():
        yield from list(dict.values(kept)) if is_a(kept, dict) else ()


def _model_row(holding: Holding, asker: Asker, all_totals: DeviceTotals) -> Steps:
    totals = DeviceTotals()
    yield from _count(tensors_of(holding.value, asker), asker, totals, all_totals)
    row = _head(holding, totals.by_device)
    if main := main_device(totals.by_device):
        row |= yield from _parts_rows(holding.value, main, asker)
    return row


def _parts_rows(model: Any, main: str, asker: Asker) -> Steps:
    parts: list[Part] = []
    for parts in take_apart(model, main, asker):  # noqa: B007 (read below, when it is complete)
        yield
    apart = elsewhere(parts)
    return {
        "main": main,
        "parts": [_part_row(part, asker) for part in apart[:MOST_PARTS]],
        "parts_left_out": max(0, len(apart) - MOST_PARTS),
    }


def _part_row(part: Part, asker: Asker) -> Row:
    row: Row = {
        "path": part.path,
        "kind": part.kind,
        "type": type_name(part.value),
        "devices": _by_device(part.totals),
    }
    if is_a(part.value, asker.tensor):
        info = asker.info(part.value)
        row |= {"shape": list(info.shape), "dtype": info.dtype}
    return row


def _head(holding: Holding, totals: Totals) -> Row:
    return {
        "kind": holding.kind,
        "name": holding.names[0],
        "names": holding.names[1:],
        "type": type_name(holding.value),
        "devices": _by_device(totals),
    }


def _by_device(totals: Totals) -> list[Row]:
    return [
        {"device": device, "tensors": total.tensors, "parameters": total.parameters, "bytes": total.bytes}
        for device, total in sorted(totals.items())
    ]


_ROWS: Final = {"tensor": _tensor_row, "optimizer": _optimizer_row, "model": _model_row}
