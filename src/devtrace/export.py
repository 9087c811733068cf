"""The trace in the words of other tools: pandas tables, and the Chrome trace JSON that ui.perfetto.dev opens.

In Perfetto a device is a process and a thread of the program one of its threads; modules are a process of their own, so
that a call lies above the ops it made. A copy stands on both its devices, joined by an arrow.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from .columns import TABLES, Column
from .lanes import begins
from .plain import line, size
from .trace import Ints, Table, Trace

if TYPE_CHECKING:
    import pandas

JsonEntry = dict[str, Any]

_YES_NO: Final = {"simulated", "ran", "training", "grad", "pinned", "non_blocking"}
_TIMES: Final = {"start", "duration"}
_FINDING_FIELDS: Final = (
    "rule", "severity", "cause", "devices", "site", "op", "culprit", "count", "bytes", "message", "help",
)  # fmt: skip


def to_pandas(trace: Trace) -> dict[str, pandas.DataFrame]:
    """One DataFrame a table, by its name, and one of the findings.

    The index is the row id. A reference to another table is its id (<NA>: none), a device is its name, a time is a
    timedelta (NaT: it never ended). `ops` also has `module`, `ledger` a column of ops for each device.
    """
    import pandas as pd

    frames = {name: _frame(trace, name) for name in TABLES}
    paths = [trace.modules[id].path for id in trace.calls.ints("module").tolist()]
    calls = trace.ops.ints("call").tolist()
    frames["ops"]["module"] = pd.Categorical([paths[call] if call >= 0 else None for call in calls])
    frames["ledger"] = _ledger(trace, frames["ledger"])
    frames["findings"] = _findings(trace)
    return frames


def _frame(trace: Trace, name: str) -> pandas.DataFrame:
    import pandas as pd

    table = trace.table(name)
    index = pd.RangeIndex(len(table), name="id")
    return pd.DataFrame({column.name: _series(trace, table, column) for column in TABLES[name]}, index=index)


def _series(trace: Trace, table: Table[Any], column: Column) -> Any:
    import pandas as pd

    if column.is_list:
        lists = table.lists(column.name)
        return [tuple(lists[row].tolist()) for row in range(len(table))]
    values = table.ints(column.name)
    if column.kind == "text":
        return _categories(values, trace.strings)
    if column.table == "devices":
        return _categories(values, [device.name for device in trace.devices])
    if column.table == "shapes":
        shapes = [shape.dims for shape in trace.shapes]
        return [shapes[id] if id >= 0 else None for id in values.tolist()]
    if column.name in _TIMES:
        return pd.to_timedelta(np.where(values < 0, np.iinfo(np.int64).min, values), unit="ns")
    if column.name in _YES_NO:
        return pd.array(values > 0, dtype="boolean")
    if column.kind == "row" or column.name in ("cell", "line", "rank", "op"):
        return pd.arrays.IntegerArray(values.astype(np.int32), values < 0)
    return values.astype(np.int64)


def _categories(values: Ints, names: Any) -> Any:
    """Text as a categorical of those strings that occur, -1 as missing."""
    import pandas as pd

    used, codes = np.unique(values, return_inverse=True)
    known = [id for id in used.tolist() if id >= 0]
    words = pd.Series([names[id] for id in known], dtype="str" if known else "object")
    return pd.Categorical.from_codes(codes - (len(used) - len(known)), categories=pd.Index(words))


def _ledger(trace: Trace, frame: pandas.DataFrame) -> pandas.DataFrame:
    by_device = frame.pop("ops")
    for id, device in enumerate(trace.devices):
        frame[f"ops {device.name}"] = np.array([row[id] if id < len(row) else 0 for row in by_device], dtype=np.int64)
    return frame


def _findings(trace: Trace) -> pandas.DataFrame:
    import pandas as pd

    rows = [{**finding, "culprit": (finding.get("culprit") or {}).get("name")} for finding in trace.findings or ()]
    frame = pd.DataFrame(rows, columns=list(_FINDING_FIELDS))
    for name in ("rule", "severity", "cause"):
        frame[name] = frame[name].astype("category")
    for name in ("site", "op", "count", "bytes"):
        frame[name] = frame[name].astype("int64")
    frame.index.name = "id"
    return frame


def to_perfetto(trace: Trace, path: str | Path) -> Path:
    """Write the trace as Chrome trace JSON: every op, module call, copy, error and finding."""
    target = Path(path)
    with target.open("w", encoding="ascii") as file:
        file.write('{"displayTimeUnit": "ns", "otherData": ')
        file.write(json.dumps({"title": trace.title, "recorded": trace.recorded, "producer": trace.producer}))
        file.write(', "traceEvents": [')
        for number, entry in enumerate(_Chrome(trace).entries()):
            file.write(",\n" if number else "\n")
            file.write(json.dumps(entry))
        file.write("\n]}\n")
    return target


class _Chrome:
    """Writes the entries of the Chrome trace format, times in microseconds."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.modules_pid = len(trace.devices) + 1
        self.start = begins(trace)
        self.duration = np.maximum(trace.ops.ints("duration").astype(np.int64), 0)
        self._tensors: dict[int, str] = {}
        self._sites: dict[int, str] = {}

    def entries(self) -> Iterator[JsonEntry]:
        yield from self._names()
        yield from self._calls()
        yield from (self._op(id) for id in range(len(self.trace.ops)))
        for id in range(len(self.trace.copies)):
            yield from self._copy(id)
        yield from self._marks()

    def _names(self) -> Iterator[JsonEntry]:
        devices = [f"{device.name} (simulated)" if device.simulated else device.name for device in self.trace.devices]
        for pid, name in enumerate([*devices, "modules"], 1):
            yield self._meta("process_name", pid, 0, {"name": line(name)})
            yield self._meta("process_sort_index", pid, 0, {"sort_index": 0 if pid == self.modules_pid else pid})
        for pid, tid in sorted(self._lanes()):
            thread = self.trace.threads[tid - 1]
            rank = f"rank {thread.rank} " if thread.rank >= 0 else ""
            yield self._meta("thread_name", pid, tid, {"name": line(rank + thread.name)})

    def _lanes(self) -> set[tuple[int, int]]:
        """Each process and thread that something lies on."""
        ops, copies = self.trace.ops, self.trace.copies
        found = {(device + 1, thread + 1) for device, thread in _pairs(ops.ints("device"), ops.ints("thread"))}
        threads = ops.ints("thread")[copies.ints("op")]
        found |= {(device + 1, thread + 1) for device, thread in _pairs(copies.ints("from"), threads)}
        found |= {(device + 1, thread + 1) for device, thread in _pairs(copies.ints("to"), threads)}
        found |= {(self.modules_pid, thread + 1) for thread in set(self.trace.calls.ints("thread").tolist())}
        return {(pid, tid) for pid, tid in found if pid > 0 and tid > 0}

    @staticmethod
    def _meta(name: str, pid: int, tid: int, args: JsonEntry) -> JsonEntry:
        return {"ph": "M", "name": name, "pid": pid, "tid": tid, "args": args}

    def _calls(self) -> Iterator[JsonEntry]:
        for call in self.trace.calls:
            if call.begin < call.end:
                first, last = call.begin, call.end - 1
                begin, end = int(self.start[first]), int((self.start + self.duration)[first : last + 1].max())
                args = {"type": call.module.type, "ops": call.end - call.begin, "training": bool(call.training > 0)}
                yield self._slice(
                    "module", line(call.module.path), self.modules_pid, call.thread.id + 1, begin, end, args
                )

    def _op(self, id: int) -> JsonEntry:
        op = self.trace.ops[id]
        lane = max(self.trace.ops.number("device", id), -1) + 1 or self.modules_pid
        begin = int(self.start[id])
        end = begin + int(self.duration[id])
        return self._slice("op", line(op.name), lane, op.thread.id + 1, begin, end, self._args(id))

    def _args(self, id: int) -> JsonEntry:
        op, ops = self.trace.ops[id], self.trace.ops
        args: JsonEntry = {"op": id, "kind": op.kind, "phase": op.phase}
        args["inputs"] = [self._tensor(tensor) for tensor in ops.lists("inputs")[id].tolist()]
        args["outputs"] = [self._tensor(tensor) for tensor in ops.lists("outputs")[id].tolist()]
        if op.module:
            args["module"] = line(op.module.path)
        if op.site:
            args["site"] = self._site(op.site.id)
        if op.duration < 0:
            args["raised"] = True
        return args

    def _copy(self, id: int) -> Iterator[JsonEntry]:
        """A slice on the device that gave the data, where no op of this thread can lie, and an arrow to the op."""
        copy = self.trace.copies[id]
        op = copy.op.id
        begin, end, tid = int(self.start[op]), int(self.start[op] + self.duration[op]), copy.op.thread.id + 1
        ends = self.trace.copies.number("from", id) + 1, self.trace.copies.number("to", id) + 1
        args = {
            "op": op,
            "bytes": copy.bytes,
            "pinned": bool(copy.pinned > 0),
            "non_blocking": bool(copy.non_blocking > 0),
        }
        own = self.trace.ops.number("device", op) + 1
        for pid, other in (ends, ends[::-1]):
            if pid != own:
                sense = "to" if pid == ends[0] else "from"
                name = f"copy {sense} {line(self.trace.devices[other - 1].name)}, {size(copy.bytes)}"
                yield self._slice("copy", name, pid, tid, begin, end, args)
        for mark, pid in (("s", ends[0]), ("f", ends[1])):
            flow = {"ph": mark, "cat": "copy", "name": "copy", "id": id, "pid": pid, "tid": tid, "ts": begin / 1000}
            yield {**flow, "bp": "e"} if mark == "f" else flow

    def _marks(self) -> Iterator[JsonEntry]:
        for error in self.trace.errors:
            yield self._mark("error", error.type, error.op.id, {"message": line(error.message, 2000)})
        for finding in self.trace.findings or ():
            if int(finding.get("op", -1)) >= 0:
                said = {"message": line(str(finding.get("message")), 2000), "fix": line(str(finding.get("help")), 2000)}
                yield self._mark("finding", str(finding.get("rule")), int(finding["op"]), said)

    def _mark(self, cat: str, name: str, op: int, args: JsonEntry) -> JsonEntry:
        pid = self.trace.ops.number("device", op) + 1 or self.modules_pid
        place = {"pid": pid, "tid": self.trace.ops.number("thread", op) + 1, "ts": int(self.start[op]) / 1000}
        return {"ph": "i", "s": "t", "cat": cat, "name": line(name), **place, "args": args}

    @staticmethod
    def _slice(cat: str, name: str, pid: int, tid: int, begin: int, end: int, args: JsonEntry) -> JsonEntry:
        times = {"ts": begin / 1000, "dur": (end - begin) / 1000}
        return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, **times, "args": args}

    def _tensor(self, id: int) -> str:
        if id not in self._tensors:
            tensor = self.trace.tensors[id]
            shape = "×".join(map(str, tensor.shape)) or "scalar"
            self._tensors[id] = line(f"{tensor.name} {tensor.dtype} {shape} on {tensor.device}".strip())
        return self._tensors[id]

    def _site(self, id: int) -> str:
        if id not in self._sites:
            site = self.trace.sites[id]
            self._sites[id] = line(f"{site}: {site.text}")
        return self._sites[id]


def _pairs(first: Ints, second: Ints) -> set[tuple[int, int]]:
    return set(zip(first.tolist(), second.tolist(), strict=True))
