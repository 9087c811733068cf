"""The trace as a snapshot that PyTorch's own pytorch.org/memory_viz and `torch.cuda._memory_viz` read.

On a simulated device a block lives until its memory was given back, as long as the trace was not saved and read. Else
a tensor has its memory from the op that made it to the last op that used it, the least that it can be; parameters,
buffers and an optimizer's state stay. Each block has the op that made it, its module, the user's line with its callers,
and what it is for. Addresses are made up: each block has one of its own.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from devtrace.drawing.lanes import begins
from devtrace.runtime.whole_files import whole
from devtrace.trace.curve import ENDLESS, KINDS, Lives
from devtrace.trace.memory_curves import kinds_of, lives_until_use
from devtrace.trace.rows import Site
from devtrace.trace.tables import TraceData

_Entry = dict[str, Any]
_FIRST: Final = 0x7F00_0000_0000
_ROUND: Final = 512
_STAY: Final = ("parameter", "buffer", "optimizer-state")


def to_memory_viz(trace: TraceData, path: str | Path) -> Path:
    with whole(path) as beside, beside.open("wb") as file:
        pickle.dump(_snapshot(trace), file)
    return Path(path)


def _snapshot(trace: TraceData) -> _Entry:
    numbers = _numbers(trace)
    traces: list[list[_Entry]] = [[] for _ in range(max(numbers.values(), default=-1) + 1)]
    segments: list[_Entry] = []
    exact = {curve.device: curve.lives for curve in trace.memory if curve.is_exact and curve.lives is not None}
    least = _least(trace)
    for row, number in numbers.items():
        mine = np.flatnonzero(least.device == row)
        blocks = _Blocks(trace, exact.get(str(trace.devices[row])) or Lives(*(column[mine] for column in least)))
        traces[number] += blocks.events()
        segments += blocks.left(number)
    return {"segments": segments, "device_traces": traces, "allocator_settings": {}, "external_annotations": []}


def _least(trace: TraceData) -> Lives:
    lives = lives_until_use(trace)
    stays = np.isin(kinds_of(trace, lives), [KINDS.index(kind) for kind in _STAY])
    return lives._replace(end=np.where(stays, ENDLESS, lives.end))


def _numbers(trace: TraceData) -> dict[int, int]:
    """Return the number of each accelerator: its own, unless another has that."""
    found: dict[int, int] = {}
    for row, name in enumerate(map(str, trace.devices)):
        kind, _, own = name.partition(":")
        if kind not in ("cpu", "meta"):
            wanted = int(own) if own.isdigit() else 0
            found[row] = max(found.values()) + 1 if wanted in found.values() else wanted
    return found


class _Blocks:
    """Makes the entries of blocks of memory."""

    def __init__(self, trace: TraceData, lives: Lives) -> None:
        self._trace, self._lives = trace, lives
        self._kinds = [KINDS[kind] for kind in kinds_of(trace, lives).tolist()]
        self._sizes = np.maximum(-(-lives.bytes // _ROUND) * _ROUND, _ROUND)
        self._addresses = _FIRST + np.cumsum(self._sizes) - self._sizes
        self._times = np.append(begins(trace), 0) // 1000
        self._callers = cache(self._frames_of_site)

    def events(self) -> Iterator[_Entry]:
        """Yield what happens in its order; where a block ends with an op, the op's result is there."""
        for block, is_begin in zip(*(each.tolist() for each in self._lives.happenings()), strict=True):
            ops = self._lives.begin_op if is_begin else self._lives.end_op
            for action in ("alloc",) if is_begin else ("free_requested", "free_completed"):
                yield self._entry(action, block, min(max(int(ops[block]), 0), len(self._trace.ops)))

    def left(self, device: int) -> Iterator[_Entry]:
        """Yield a segment for each block that stays."""
        for block in np.flatnonzero(self._lives.end == ENDLESS).tolist():
            size, address = int(self._sizes[block]), int(self._addresses[block])
            sizes = dict.fromkeys(("total_size", "allocated_size", "active_size", "requested_size"), size)
            part = {"address": address, "size": size, "requested_size": int(self._lives.bytes[block])}
            shown = {**part, "state": "active_allocated", "frames": self._frames(block)}
            segment = {"device": device, "address": address, **sizes, "stream": 0, "segment_type": "large"}
            yield {**segment, "segment_pool_id": (0, 0), "is_expandable": False, "frames": [], "blocks": [shown]}

    def _entry(self, action: str, block: int, op: int) -> _Entry:
        return {
            "action": action,
            "addr": int(self._addresses[block]),
            "size": int(self._sizes[block]),
            "stream": 0,
            "time_us": int(self._times[op]),
            "category": self._kinds[block],
            "frames": self._frames(block) if action == "alloc" else [],
        }

    def _frames(self, block: int) -> list[_Entry]:
        """Return what a block is for and what made it, the innermost first."""
        trace, op, row = self._trace, int(self._lives.begin_op[block]), int(self._lives.tensor[block])
        site = trace.tensors.number("site", row) if row >= 0 else -1
        texts = [trace.tensors[row].name if row >= 0 else ""]
        if 0 <= op < len(trace.ops):
            site, call = trace.ops.number("site", op), trace.ops.number("call", op)
            module = trace.modules[trace.calls.number("module", call)].path if call >= 0 else ""
            texts += [trace.ops[op].name, module and f"module {module}"]
        frames = [_frame("", 0, text) for text in texts if text]
        return frames + (self._callers(site) if site >= 0 else [])

    def _frames_of_site(self, number: int) -> list[_Entry]:
        site: Site | None = self._trace.sites[number]
        found = []
        while site is not None:
            found.append(_frame(site.file, site.line, site.function or "<module>"))
            site = site.caller
        return found


def _frame(file: str, line: int, name: str) -> _Entry:
    return {"filename": file, "line": line, "name": name}
