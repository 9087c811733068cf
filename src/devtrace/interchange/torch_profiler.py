"""Read what torch.profiler exported: a trace from a machine without devtrace, looked at with devtrace's views.

    trace = devtrace.from_profiler("trace.json")          # or .json.gz

A profile has less than a recording, and a note of the trace says so. It has no tensors, and so no devices of inputs, no
names and no births. An op's device is that of the kernels and copies that it launched; a line is that where the
function begins. Times are the host's, as in a recording.
"""

from __future__ import annotations

import gzip
import json
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch

from devtrace.source.user_code import is_user_code
from devtrace.trace.builder import TraceBuilder
from devtrace.trace.op_kinds import CARRIERS, kind_by_name
from devtrace.trace.tables import TraceData
from devtrace.words.catalogue import sentence
from devtrace.words.errors import FormatError

_FUNCTION: Final = re.compile(r"(?P<file>[^()]+)\((?P<line>\d+)\): (?P<name>.+)")
_MODULE: Final = "nn.Module: "
_ON_DEVICE: Final = ("kernel", "gpu_memcpy", "gpu_memset")
_MEMCPY: Final = re.compile(r"Memcpy (?P<way>HtoD|DtoH)\b(?P<rest>.*)")
ROUNDING: Final = 2
"""ns by which an entry may seem to outlast the one it lies in: each of its two times was rounded."""


@dataclass(slots=True, eq=False)
class _Span:
    """One complete entry of the export, its times in ns from the first, and the entry that it lies in."""

    name: str
    cat: str
    begin: int
    end: int
    thread: tuple[Any, Any]
    args: Mapping[str, Any]
    parent: _Span | None = None

    @property
    def short(self) -> str:
        """addmm for aten::addmm."""
        return self.name.rpartition("::")[2]

    @property
    def is_op(self) -> bool:
        return self.cat == "cpu_op" and "::" in self.name and not self.name.startswith("autograd::")

    def above(self) -> Iterator[_Span]:
        around = self.parent
        while around is not None:
            yield around
            around = around.parent


def from_profiler(path: str | Path) -> TraceData:
    """Read an export of torch.profiler (`export_chrome_trace`)."""
    source = Path(path)
    exported = _read(source)
    spans = _spans(exported["traceEvents"])
    return _Import(source.name.removesuffix(".gz").removesuffix(".json"), exported, spans).trace()


def _read(source: Path) -> dict[str, Any]:
    raw = source.read_bytes()
    try:
        text = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
        exported = json.loads(text)
    except (ValueError, OSError, EOFError, RecursionError) as error:
        raise FormatError.of("profile-foreign", file=source.name, fault=str(error)[:60]) from None
    if not isinstance(exported, dict) or not isinstance(exported.get("traceEvents"), list):
        raise FormatError.of("profile-foreign.list", file=source.name)
    return exported


def _spans(entries: Iterable[Any]) -> list[_Span]:
    """Return the complete entries by begin, each with the one around it in its thread."""
    found = [entry for entry in entries if isinstance(entry, dict) and entry.get("ph") == "X" and _timed(entry)]
    first = min((entry["ts"] for entry in found), default=0)
    spans = [
        _Span(
            str(entry.get("name", "")),
            str(entry.get("cat", "")),
            begin := round((entry["ts"] - first) * 1000),
            begin + max(round(entry["dur"] * 1000), 0),
            (entry.get("pid"), entry.get("tid")),
            entry["args"] if isinstance(entry.get("args"), dict) else {},
        )
        for entry in found
    ]
    spans.sort(key=lambda span: (span.begin, -span.end))
    _nest(spans)
    return spans


def _timed(entry: Mapping[str, Any]) -> bool:
    return all(type(entry.get(key)) in (int, float) and abs(entry[key]) < 1e15 for key in ("ts", "dur"))


def _nest(spans: Sequence[_Span]) -> None:
    """Find the parent of each entry. An annotation that outlasts the function it began in has that one's parent."""
    open_spans: dict[tuple[Any, Any], list[_Span]] = defaultdict(list)
    for span in spans:
        around = open_spans[span.thread]
        while around and around[-1].end <= span.begin:
            around.pop()
        span.parent = next((each for each in reversed(around) if span.end <= each.end + ROUNDING), None)
        if span.parent:
            span.end = min(span.end, span.parent.end)
        around.append(span)


class _Import:
    def __init__(self, title: str, exported: Mapping[str, Any], spans: Sequence[_Span]) -> None:
        self.builder = TraceBuilder(title, "", "torch.profiler")
        self.spans = spans
        job = exported.get("distributedInfo")
        self.rank = job["rank"] if isinstance(job, dict) and type(job.get("rank")) is int else -1
        self.chosen = _chosen(spans)
        self.number = {span: number for number, span in enumerate(self.chosen)}
        self.begins = [span.begin for span in self.chosen]
        self.launched = self._launched()
        self.call_of: dict[_Span, int] = {}
        self.paths: dict[int, str] = {}

    def trace(self) -> TraceData:
        self._add_calls()
        for number, span in enumerate(self.chosen):
            self._add_op(number, span)
        self._add_copies()
        self.builder.notes.append(sentence("note.profiler"))
        if self.chosen and not any(span.cat == "python_function" for span in self.spans):
            self.builder.notes.append(sentence("note.profiler-stack"))
        return self.builder.build()

    def _launched(self) -> dict[int, list[_Span]]:
        """Return the device's entries of each op: the export joins them by an id that the innermost op has."""
        owners: dict[Any, int] = {}
        for span in self.spans:
            if span.cat == "cpu_op" and "External id" in span.args:
                whole = next((each for each in (span, *span.above()) if each in self.number), None)
                if whole is not None:
                    owners[_key(span.args["External id"])] = self.number[whole]
        launched: dict[int, list[_Span]] = defaultdict(list)
        for span in self.spans:
            owner = owners.get(_key(span.args.get("External id"))) if span.cat in _ON_DEVICE else None
            if owner is not None:
                launched[owner].append(span)
        return launched

    def _thread(self, key: tuple[Any, Any]) -> int:
        return self.builder.intern("threads", key, name=f"thread {key[1]}", rank=self.rank)

    def _add_calls(self) -> None:
        """A call for each entry of a module. Modules are known by class and number: Linear_0."""
        for span in self.spans:
            if span.cat == "python_function" and span.name.startswith(_MODULE):
                parent = self._call(span)
                module = self._module(span.name.removeprefix(_MODULE), parent)
                begin = bisect_left(self.begins, span.begin)
                end = bisect_left(self.begins, span.end, begin)
                thread = self._thread(span.thread)
                self.call_of[span] = self.builder.append(
                    "calls", module=module, parent=parent, begin=begin, end=end, thread=thread
                )

    def _call(self, span: _Span) -> int:
        """Return the innermost call around it; -1 for none."""
        return next((self.call_of[each] for each in span.above() if each in self.call_of), -1)

    def _module(self, name: str, call: int) -> int:
        parent = self.builder.get("calls", call, "module") if call >= 0 else -1
        above = self.paths[parent] + "." if parent >= 0 else ""
        kind = name.rpartition("_")[0] or name
        id = self.builder.intern("modules", name, path=above + name, type=kind, parent=parent, op=-1, ran=1)
        self.paths.setdefault(id, above + name)
        return id

    def _add_op(self, number: int, span: _Span) -> None:
        around = list(span.above())
        call = self._call(span)
        kind = kind_by_name(span.short)
        self.builder.append(
            "ops",
            name=span.name.replace("::", "."),
            start=span.begin,
            duration=span.end - span.begin,
            device=self._device(number, span.short, kind),
            kind=kind,
            phase=_phase(around, in_call=call >= 0),
            call=call,
            site=self._site(around),
            thread=self._thread(span.thread),
            grad=-1,
        )

    def _device(self, number: int, op: str, kind: str) -> int:
        """By what the op launched. Computation that launched nothing ran on the CPU; of the rest the export is silent
        where there is a device at all."""
        if name := next(filter(None, map(_device_of, self.launched.get(number, ()))), ""):
            return self.builder.device(name)
        if (kind not in ("view", "create") and op not in CARRIERS) or not self.launched:
            return self.builder.device("cpu")
        return -1

    def _site(self, around: Sequence[_Span]) -> int:
        """Add the innermost function of the user's own."""
        for span in around:
            found = _FUNCTION.fullmatch(span.name) if span.cat == "python_function" else None
            if found and is_user_code(found["file"]):
                line = min(int(found["line"]), 10**9)
                return self.builder.intern("sites", found[0], file=found["file"], line=line, function=found["name"])
        return -1

    def _add_copies(self) -> None:
        for number, spans in sorted(self.launched.items()):
            for span in spans:
                found = _MEMCPY.match(span.name) if span.cat == "gpu_memcpy" else None
                device = _device_of(span)
                if found and device:
                    ends = [self.builder.device("cpu"), self.builder.device(device)]
                    source, to = ends if found["way"] == "HtoD" else ends[::-1]
                    amount = span.args.get("bytes")
                    known = amount if type(amount) is int and 0 <= amount < 2**53 else 0
                    pinned = int("Pinned" in found["rest"])
                    self.builder.append("copies", op=number, **{"from": source}, to=to, bytes=known, pinned=pinned)


def _chosen(spans: Sequence[_Span]) -> list[_Span]:
    """Choose the ops that a recording would have seen: those that torch dispatched, without those within them."""
    composite = _composite_ops()
    dispatched = [span for span in spans if span.is_op and span.name not in composite]
    whole = set(dispatched)
    return [span for span in dispatched if whole.isdisjoint(span.above())]


def _composite_ops() -> frozenset[str]:
    """Return the names ("aten::linear") all of whose overloads torch decomposes before it dispatches.

    Overloads for `out=` and named dimensions do not count: they often are where the op itself is not.
    """
    decomposed = set(torch._C._dispatch_get_registrations_for_dispatch_key("CompositeImplicitAutograd"))
    overloads: dict[str, list[str]] = defaultdict(list)
    for name in torch._C._dispatch_get_all_op_names():
        base, _, overload = name.partition(".")
        if not overload.endswith("out") and "name" not in overload.lower():
            overloads[base].append(name)
    return frozenset(base for base, names in overloads.items() if all(name in decomposed for name in names))


def _key(value: object) -> object:
    return value if isinstance(value, int | str) else None


def _phase(around: Sequence[_Span], *, in_call: bool) -> str:
    for span in around:
        if span.name.startswith("autograd::engine::evaluate_function"):
            return "backward"
        if span.name.startswith("Optimizer.step"):
            return "optimizer"
    return "forward" if in_call else "other"


def _device_of(span: _Span) -> str:
    number = span.args.get("device")
    return f"cuda:{number}" if type(number) is int and 0 <= number < 10_000 else ""
