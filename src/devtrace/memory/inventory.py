"""The memory of each device beside what names hold there: how much is in use, the highest, and who holds most of it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from devtrace.notebook.inventory.inventory import Row, Steps, listing
from devtrace.runtime.import_hook import ImportWatcher
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import safe_line

if TYPE_CHECKING:
    from devtrace.memory.holders import Holders

MOST_HOLDERS: Final = 5
_LONGEST: Final = 60


def listing_with_memory(names: Mapping[str, Any], *, simulated: bool = False) -> Steps:
    """List what names hold; the row of a device that counts its memory has `memory`, and is there without names too."""
    inventory = yield from listing(names, simulated=simulated)
    if ImportWatcher("torch").is_imported:
        from devtrace.memory.holders import holders_by_name

        with suppress(Exception):  # a walk over objects of any kind: without it the names are listed all the same
            _add_memory(inventory, (yield from holders_by_name(names)), simulated)
    return inventory


def _add_memory(inventory: Row, by_device: Mapping[str, Holders], simulated: bool) -> None:
    rows = {row["device"]: row for row in inventory["devices"]}
    for device, memory in by_device.items():
        nothing = {"simulated": simulated, "device": device, "tensors": 0, "parameters": 0, "bytes": 0}
        if device in rows or memory.alive.allocated:
            rows[device] = {**rows.get(device, nothing), "memory": _memory_row(memory)}
    inventory["devices"] = list(rows.values())


def _memory_row(memory: Holders) -> Row:
    alive = memory.alive
    holders = [{"what": _words_for(*holder), "bytes": size} for holder, size in memory.largest[:MOST_HOLDERS]]
    return {"used": alive.allocated, "highest": alive.highest, "limit": alive.limit, "holders": holders}


def _words_for(kind: str, name: str) -> str:
    if kind == "temporary":
        return sentence("devices.unnamed")
    from devtrace.memory.rules.out_of_memory import what

    return what(kind, safe_line(name, _LONGEST))
