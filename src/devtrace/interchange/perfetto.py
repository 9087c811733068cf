"""The trace as the Chrome trace JSON that ui.perfetto.dev opens: every op, module call, copy, error and finding.

A device is a process and a thread of the program one of its threads; modules are a process of their own, so that a call
lies above the ops it made. A copy is on both its devices, joined by an arrow. Ops and calls, the bulk, are written
column by column: text that rows share (of a tensor, a site, a module) is put into JSON once.
"""

import json
from collections.abc import Iterator
from itertools import chain, pairwise, repeat
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


def to_perfetto(trace: TraceData, path: str | Path) -> Path:
    with whole(path) as beside, beside.open("w", encoding="ascii") as file:
        file.write('{"displayTimeUnit": "ns", "otherData": ')
        file.write(json.dumps({"title": trace.title, "recorded": trace.recorded, "producer": trace.producer}))
        file.write(', "traceEvents": [')
        entries = zip(chain(["\n"], repeat(",\n")), _Chrome(trace).entries(), strict=False)
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

    def entries(self) -> Iterator[str]:
        yield from map(json.dumps, self._names())
        yield from self._calls()
        yield from self._ops()
        yield from map(json.dumps, chain.from_iterable(map(self._copy, self.trace.copies)))
        yield from map(json.dumps, self._marks())

    def _names(self) -> Iterator[JsonEntry]:
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
        found = _pairs(self._pids(), ops.ints("thread") + 1)
        threads = ops.ints("thread")[copies.ints("op")] + 1
        found |= _pairs(copies.ints("from") + 1, threads) | _pairs(copies.ints("to") + 1, threads)
        found |= {(self.modules_pid, thread + 1) for thread in set(self.trace.calls.ints("thread").tolist())}
        return {(pid, tid) for pid, tid in found if pid > 0 and tid > 0}

    def _pids(self) -> Ints:
        """Return the process of each op; an op without a device lies beside the modules."""
        device = self.trace.ops.ints("device")
        return np.where(device >= 0, device + 1, self.modules_pid)

    def _calls(self) -> Iterator[str]:
        calls = self.trace.calls
        spans = np.stack([calls.ints("begin"), calls.ints("end")], axis=1).astype(np.int64)
        rows = np.flatnonzero(spans[:, 0] < spans[:, 1])
        spans = spans[rows]
        # The last end among the ops of each call: reduceat takes [begin, end) at the even places.
        last = np.maximum.reduceat(np.append(self.end, 0), spans.ravel())[::2] if len(rows) else spans[:, 0]
        first = self.begin[spans[:, 0]]
        names = [_quoted(module.path) for module in self.trace.modules]
        types = [json.dumps(module.type) for module in self.trace.modules]
        columns = (calls.ints("module")[rows], calls.ints("thread")[rows] + 1, spans[:, 1] - spans[:, 0],
                   calls.ints("training")[rows] > 0, first / 1000, (last - first) / 1000)  # fmt: skip
        for module, tid, ops, training, ts, dur in zip(*(column.tolist() for column in columns), strict=True):
            args = f'{{"type": {types[module]}, "ops": {ops}, "training": {"true" if training else "false"}}}'
            yield _slice("module", names[module], self.modules_pid, tid, ts, dur, args)

    def _ops(self) -> Iterator[str]:
        ops = self.trace.ops
        names, kinds, phases = (self._words(ops.ints(name)) for name in ("name", "kind", "phase"))
        inputs, outputs = (self._joined(name) for name in ("inputs", "outputs"))
        numbers = (self._pids(), ops.ints("thread") + 1, self.begin / 1000, self.duration / 1000)
        rows = zip(
            names, kinds, phases, inputs, outputs, self._ends_of_args(), *(n.tolist() for n in numbers), strict=True
        )
        for id, (name, kind, phase, taken, made, rest, pid, tid, ts, dur) in enumerate(rows):
            args = f'{{"op": {id}, "kind": {kind}, "phase": {phase}, "inputs": [{taken}], "outputs": [{made}]{rest}}}'
            yield _slice("op", name, pid, tid, ts, dur, args)

    def _ends_of_args(self) -> list[str]:
        """Return the end of each op's args: its module, its site, that it raised."""
        ops = self.trace.ops
        paths = [_quoted(module.path) for module in self.trace.modules]
        # The last entry is for an id of -1.
        modules = [*(f', "module": {paths[id]}' for id in self.trace.calls.ints("module").tolist()), ""]
        sites = [*(f', "site": {_quoted(f"{site}: {site.text}")}' for site in self.trace.sites), ""]
        raising = ("", ', "raised": true')
        columns = (ops.ints("call"), ops.ints("site"), ops.ints("duration") < 0)
        return [
            modules[call] + sites[site] + raising[raised]
            for call, site, raised in zip(*(column.tolist() for column in columns), strict=True)
        ]

    def _words(self, column: Ints) -> list[str]:
        """Return the text of each row as JSON."""
        words = {id: _quoted(self.trace.strings[id]) for id in set(column.tolist())}
        return [words[id] for id in column.tolist()]

    def _joined(self, name: str) -> list[str]:
        """Return the tensors that each op took, or made, as JSON."""
        lists = self.trace.ops.lists(name)
        texts, offsets = self._tensors(), lists.offsets.tolist()
        flat = [texts[id] for id in lists.flat.tolist()]
        return [", ".join(flat[begin:end]) for begin, end in pairwise(offsets)]

    def _tensors(self) -> list[str]:
        """Describe each tensor; many are alike."""
        trace, tensors = self.trace, self.trace.tensors
        words: dict[tuple[int, ...], str] = {}
        keys = list(zip(*(tensors.ints(name).tolist() for name in ("name", "dtype", "shape", "device")), strict=True))
        for key in set(keys):
            name, dtype, shape, device = key
            dims = "×".join(map(str, trace.shapes[shape])) or "scalar"
            text = f"{trace.strings[name]} {trace.strings[dtype]} {dims} on {trace.devices[device]}"
            words[key] = _quoted(text.strip())
        return [words[key] for key in keys]

    def _copy(self, copy: Copy) -> Iterator[JsonEntry]:
        """A slice on the device that gave the data, where no op of this thread can lie, and an arrow to the op."""
        op, source, to = copy.op, copy.from_, copy.to
        start, duration = int(self.begin[op.id]) / 1000, int(self.duration[op.id]) / 1000
        args = {
            "op": op.id, "bytes": copy.bytes, "pinned": copy.pinned > 0, "non_blocking": copy.non_blocking > 0,
        }  # fmt: skip
        ends = [{"pid": device.id + 1, "tid": op.thread.id + 1, "ts": start} for device in (source, to)]
        ways = (f"to {safe_line(to.name)}", f"from {safe_line(source.name)}")
        for device, way, end in zip((source, to), ways, ends, strict=True):
            if op.device is None or device.id != op.device.id:
                name = f"copy {way}, {format_bytes(copy.bytes)}"
                yield {"ph": "X", "cat": "copy", "name": name, **end, "dur": duration, "args": args}
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


def _slice(cat: str, name: str, pid: int, tid: int, ts: float, dur: float, args: str) -> str:
    """A complete entry; `name` and `args` are JSON."""
    return (
        f'{{"ph": "X", "cat": "{cat}", "name": {name}, "pid": {pid}, "tid": {tid}, "ts": {ts}, "dur": {dur}, '
        f'"args": {args}}}'
    )


def _quoted(text: str) -> str:
    return json.dumps(safe_line(text))


def _pairs(first: Ints, second: Ints) -> set[tuple[int, int]]:
    return set(zip(first.tolist(), second.tolist(), strict=True))
