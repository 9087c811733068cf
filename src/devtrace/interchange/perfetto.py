"""The trace as the Chrome trace JSON that ui.perfetto.dev opens: every op, module call, copy, error and finding.

A device is a process and a thread of the program one of its threads; modules are a process of their own, so that a call
lies above the ops it made. A copy is on both its devices, joined by an arrow. Ops and calls, the bulk, are read column
by column: text that rows share (of a tensor, a site, a module) is made once.
"""

import json
from collections.abc import Iterable, Iterator
from itertools import chain, repeat
from pathlib import Path
from typing import Any, Final

import numpy as np

from devtrace.runtime.whole_files import whole
from devtrace.trace.rows import Copy
from devtrace.trace.tables import Ints, TraceData
from devtrace.trace.views import durations
from devtrace.words.text_format import format_bytes, safe_line

JsonEntry = dict[str, Any]

LONGEST_MESSAGE: Final = 2000
_WHERE: Final = ("pid", "tid", "ts", "dur")


def to_perfetto(trace: TraceData, path: str | Path) -> Path:
    with whole(path) as beside, beside.open("w", encoding="ascii") as file:
        file.write('{"displayTimeUnit": "ns", "otherData": ')
        file.write(json.dumps({"title": trace.title, "recorded": trace.recorded, "producer": trace.producer}))
        file.write(', "traceEvents": [')
        entries = zip(chain(["\n"], repeat(",\n")), map(json.dumps, _Chrome(trace).entries()), strict=False)
        file.writelines(chain.from_iterable(entries))
        file.write("\n]}\n")
    return Path(path)


class _Chrome:
    """Makes the entries of the Chrome trace format, as JSON; times are microseconds."""

    def __init__(self, trace: TraceData) -> None:
        self.trace = trace
        self.modules_pid = len(trace.devices) + 1
        self.begin = trace.ops.ints("start")
        self.duration = durations(trace)
        self.end = self.begin + self.duration

    def entries(self) -> Iterator[JsonEntry]:
        yield from self._lane_names()
        yield from self._module_calls()
        yield from self._op_slices()
        yield from chain.from_iterable(map(self._copy_slices, self.trace.copies))
        yield from self._marks()

    def _lane_names(self) -> Iterator[JsonEntry]:
        devices = [f"{device.name} (simulated)" if device.simulated else device.name for device in self.trace.devices]
        for pid, name in enumerate([*devices, "modules"], 1):
            yield _meta("process_name", pid, 0, {"name": safe_line(name)})
            yield _meta("process_sort_index", pid, 0, {"sort_index": 0 if pid == self.modules_pid else pid})
        for pid, tid in sorted(self._lanes()):
            thread = self.trace.threads[tid - 1]
            rank = f"rank {thread.rank} " if thread.rank >= 0 else ""
            yield _meta("thread_name", pid, tid, {"name": safe_line(rank + thread.name)})

    def _lanes(self) -> set[tuple[int, int]]:
        """Return each process and thread that has an entry."""
        ops, copies = self.trace.ops, self.trace.copies
        lanes = _unique_pairs(self._pids(), ops.ints("thread") + 1)
        threads = ops.ints("thread")[copies.ints("op")] + 1
        lanes |= _unique_pairs(copies.ints("from") + 1, threads) | _unique_pairs(copies.ints("to") + 1, threads)
        lanes |= {(self.modules_pid, thread + 1) for thread in set(self.trace.calls.ints("thread").tolist())}
        return {(pid, tid) for pid, tid in lanes if pid > 0 and tid > 0}

    def _pids(self) -> Ints:
        """Return the process of each op; an op without a device lies beside the modules."""
        device = self.trace.ops.ints("device")
        return np.where(device >= 0, device + 1, self.modules_pid)

    def _module_calls(self) -> Iterator[JsonEntry]:
        calls = self.trace.calls
        spans = np.stack([calls.ints("begin"), calls.ints("end")], axis=1).astype(np.int64)
        rows = np.flatnonzero(spans[:, 0] < spans[:, 1])
        spans = spans[rows]
        # The last end among the ops of each call: reduceat takes [begin, end) at the even places.
        ends = np.maximum.reduceat(np.append(self.end, 0), spans.ravel())[::2] if len(rows) else spans[:, 0]
        begins = self.begin[spans[:, 0]]
        columns = (calls.ints("module")[rows], calls.ints("thread")[rows] + 1, spans[:, 1] - spans[:, 0],
                   calls.ints("training")[rows] > 0, begins / 1000, (ends - begins) / 1000)  # fmt: skip
        for module, tid, ops, training, *times in zip(*(column.tolist() for column in columns), strict=True):
            module_row = self.trace.modules[module]
            args = {"type": module_row.type, "ops": ops, "training": training}
            yield _slice("module", safe_line(module_row.path), (self.modules_pid, tid, *times), args)

    def _op_slices(self) -> Iterator[JsonEntry]:
        ops, tensors = self.trace.ops, self._tensor_texts()
        inputs, outputs = ops.lists("inputs"), ops.lists("outputs")
        modules = [safe_line(self.trace.modules[id].path) for id in self.trace.calls.ints("module").tolist()]
        sites = [safe_line(f"{site}: {site.text}") for site in self.trace.sites]
        numbers = (self._pids(), ops.ints("thread") + 1, self.begin / 1000, self.duration / 1000)
        words = (self._texts(ops.ints(name)) for name in ("name", "kind", "phase"))
        integers = (ops.ints(name).tolist() for name in ("call", "site", "duration"))
        rows = zip(*words, *integers, *(column.tolist() for column in numbers), strict=True)
        for id, (name, kind, phase, call, site, duration, *where) in enumerate(rows):
            args = {"op": id, "kind": kind, "phase": phase}
            args |= {"inputs": [tensors[row] for row in inputs[id].tolist()]}
            args |= {"outputs": [tensors[row] for row in outputs[id].tolist()]}
            args |= {"module": modules[call]} if call >= 0 else {}
            args |= {"site": sites[site]} if site >= 0 else {}
            args |= {"raised": True} if duration < 0 else {}
            yield _slice("op", name, where, args)

    def _texts(self, column: Ints) -> list[str]:
        texts = {id: safe_line(self.trace.strings[id]) for id in set(column.tolist())}
        return [texts[id] for id in column.tolist()]

    def _tensor_texts(self) -> list[str]:
        """Describe each tensor; many are alike."""
        trace, tensors = self.trace, self.trace.tensors
        words: dict[tuple[int, ...], str] = {}
        keys = list(zip(*(tensors.ints(name).tolist() for name in ("name", "dtype", "shape", "device")), strict=True))
        for key in set(keys):
            name, dtype, shape, device = key
            dims = "×".join(map(str, trace.shapes[shape])) or "scalar"
            text = f"{trace.strings[name]} {trace.strings[dtype]} {dims} on {trace.devices[device]}"
            words[key] = safe_line(text.strip())
        return [words[key] for key in keys]

    def _copy_slices(self, copy: Copy) -> Iterator[JsonEntry]:
        """A slice on the device that gave the data, where no op of this thread can lie, and an arrow to the op."""
        op, source, to = copy.op, copy.from_, copy.to
        start, duration = int(self.begin[op.id]) / 1000, int(self.duration[op.id]) / 1000
        args = {"op": op.id, "bytes": copy.bytes, "pinned": copy.pinned > 0, "non_blocking": copy.non_blocking > 0}
        ends = [{"pid": device.id + 1, "tid": op.thread.id + 1, "ts": start} for device in (source, to)]
        ways = (f"to {safe_line(to.name)}", f"from {safe_line(source.name)}")
        for device, way, end in zip((source, to), ways, ends, strict=True):
            if op.device is None or device.id != op.device.id:
                yield _slice("copy", f"copy {way}, {format_bytes(copy.bytes)}", (*end.values(), duration), args)
        yield {"ph": "s", "cat": "copy", "name": "copy", "id": copy.id, **ends[0]}
        yield {"ph": "f", "cat": "copy", "name": "copy", "id": copy.id, **ends[1], "bp": "e"}

    def _marks(self) -> Iterator[JsonEntry]:
        for error in self.trace.errors:
            yield self._mark("error", error.type, error.op.id, {"message": safe_line(error.message, LONGEST_MESSAGE)})
        for finding in self.trace.findings or ():
            if int(finding.get("op", -1)) >= 0:
                texts = {"message": finding.get("message"), "fix": finding.get("help")}
                args = {key: safe_line(str(text), LONGEST_MESSAGE) for key, text in texts.items()}
                yield self._mark("finding", str(finding.get("rule")), int(finding["op"]), args)

    def _mark(self, cat: str, name: str, op: int, args: JsonEntry) -> JsonEntry:
        pid = self.trace.ops.number("device", op) + 1 or self.modules_pid
        position = {"pid": pid, "tid": self.trace.ops.number("thread", op) + 1, "ts": int(self.begin[op]) / 1000}
        return {"ph": "i", "s": "t", "cat": cat, "name": safe_line(name), **position, "args": args}


def _meta(name: str, pid: int, tid: int, args: JsonEntry) -> JsonEntry:
    return {"ph": "M", "name": name, "pid": pid, "tid": tid, "args": args}


def _slice(cat: str, name: str, where: Iterable[float], args: JsonEntry) -> JsonEntry:
    """A complete entry, at its process, thread, moment and duration."""
    return {"ph": "X", "cat": cat, "name": name, **dict(zip(_WHERE, where, strict=True)), "args": args}


def _unique_pairs(first: Ints, second: Ints) -> set[tuple[int, int]]:
    return set(zip(first.tolist(), second.tolist(), strict=True))
