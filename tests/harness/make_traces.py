"""Traces of many shapes, made without torch: what the views are built, measured and looked at with.

    python tests/harness/make_traces.py FOLDER [NAME ...]        writes FOLDER/NAME.devtrace for each scene of SCENES

Each scene is told as a recorder would see it: calls of modules, ops with tensors, copies, a finding where there is one.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import numpy as np

from devtrace.api.results import Trace
from devtrace.trace import format as devtrace_format
from devtrace.trace.tables import Ints, Lists, Values
from samples import Made
from traces import head_finding

Shape = Sequence[int]


class Sketch(Made):
    """A trace that is made with a current thread, call, site and phase, and a ledger."""

    def __init__(self, title: str) -> None:
        super().__init__(title, rank=0)
        self._random = random.Random(7)
        self.phase = "forward"
        self.call = -1
        self.site = -1
        self.thread = self.main
        self._modules: dict[str, int] = {}
        self._ledger: dict[int, dict[str, Any]] = {}

    def source(self, cell: int, text: str) -> None:
        self.builder.append("sources", file=f"In[{cell}]", text=text, line=1, cell=cell, cell_id=f"cell-{cell}")

    def at(self, cell: int, line: int, text: str, span: str | None = None, function: str = "<module>") -> int:
        """Return the site of `span` within a cell's line."""
        span = text.strip() if span is None else span
        column = max(text.find(span), 0)
        return self.builder.intern(
            "sites",
            (cell, line, column, span),
            file=f"In[{cell}]",
            line=line,
            column=column,
            end_line=line,
            end_column=column + len(span),
            function=function,
            text=span,
            cell=cell,
            cell_id=f"cell-{cell}",
            package="",
        )

    def module(self, path: str, type: str, parent: str | None = None, *, site: int = -1, op: int = -1) -> str:
        above = -1 if parent is None else self._modules[parent]
        id = self.builder.append("modules", path=path, type=type, parent=above, site=site, op=op, ran=0)
        self._modules[path] = id
        return path

    @contextmanager
    def running(self, path: str) -> Iterator[None]:
        begin, above = self.builder.count("ops"), self.call
        module = self._modules[path]
        self.call = self.builder.append(
            "calls", module=module, parent=above, begin=begin, end=begin, thread=self.thread, training=1
        )
        here = self.call
        self.builder.set("modules", module, ran=1)
        try:
            yield
        finally:
            self.builder.set("calls", here, end=self.builder.count("ops"))
            self.call = above

    def op(
        self,
        name: str,
        inputs: Sequence[int],
        shape: Shape,
        device: str,
        *,
        kind: str = "compute",
        took: int = 9_000,
        gap: int = 4_000,
        dtype: str = "float32",
        forward: int = -1,
        fails: bool = False,
    ) -> int:
        """Run an op; the result is its output tensor, or -1 when it fails."""
        took = int(took * self._random.uniform(0.8, 1.5))
        self.clock += int(gap * self._random.uniform(0.6, 2.0))
        id = self.builder.count("ops")
        outputs = [] if fails else [self.tensor(device, *shape, dtype=dtype, producer=id, site=self.site)]
        self.builder.append(
            "ops",
            name=name,
            start=self.clock,
            duration=-1 if fails else took,
            device=self.device(device),
            kind=kind,
            phase=self.phase,
            call=self.call,
            site=self.site,
            thread=self.thread,
            inputs=inputs,
            outputs=outputs,
            forward=forward,
            grad=1,
        )
        self.clock += 0 if fails else took
        self._count(device, kind)
        return -1 if fails else outputs[0]

    def copy(self, source: int, to: str, *, name: str = "aten._to_copy", took: int = 22_000) -> int:
        builder = self.builder
        dims = list(builder._columns["shapes"]["dims"][builder.get("tensors", source, "shape")])
        origin, size = builder.get("tensors", source, "device"), builder.get("tensors", source, "bytes")
        id = builder.count("ops")
        moved = self.op(name, [source], dims, to, kind="copy", took=took + size // 40)
        builder.set("tensors", moved, source=source)
        here = self.device(to)
        ends = {"from": origin, "to": here, "source": source}
        builder.append("copies", op=id, bytes=size, pinned=0, non_blocking=0, **ends)
        key = "h2d" if origin == self.device("cpu") else "d2h" if to == "cpu" else "d2d"
        self._row()[key] += 1
        self._row()["bytes"] += size
        return moved

    def sync(self, source: int) -> None:
        device = self.builder.get("tensors", source, "device")
        self.op("aten._local_scalar_dense", [source], (), "cpu", kind="sync", took=30_000)
        self._row()["syncs"] += int(device != self.device("cpu"))

    def parameter(self, name: str, shape: Shape, device: str, site: int = -1) -> int:
        return self.tensor(device, *shape, role="parameter", name=name, site=site)

    def trace(self, findings: Sequence[Mapping[str, Any]] = ()) -> Trace:
        devices = self.builder.count("devices")
        for site, row in sorted(self._ledger.items()):
            counts = [row["ops"].get(device, 0) for device in range(devices)]
            self.builder.append("ledger", site=site, **{**row, "ops": counts})
        self.builder.findings = tuple(findings)
        return Trace.of(self.builder.build())

    def _row(self) -> dict[str, Any]:
        zero = {"ops": {}, "h2d": 0, "d2h": 0, "d2d": 0, "syncs": 0, "cpu_compute": 0, "bytes": 0}
        return self._ledger.setdefault(self.site, zero)

    def _count(self, device: str, kind: str) -> None:
        ops, id = self._row()["ops"], self.device(device)
        ops[id] = ops.get(id, 0) + 1
        self._row()["cpu_compute"] += int(device == "cpu" and kind == "compute")


def finding(rule: str, severity: str, **fields: Any) -> dict[str, Any]:
    empty = {"cause": "", "devices": [], "site": -1, "op": -1, "culprit": None, "count": 1, "bytes": 0}
    return {"rule": rule, "severity": severity, **empty, "message": "", "help": "", "edits": [], **fields}


class Transformer:
    """A model: embedding, blocks and a head, each block on the device it was given."""

    def __init__(
        self, sketch: Sketch, devices: Sequence[str], head: str, width: int = 768, head_site: int = -1
    ) -> None:
        self.sketch, self.devices, self.head_device, self.width = sketch, devices, head, width
        sketch.module("model", "GPT")
        sketch.module("model.tok_emb", "Embedding", "model")
        sketch.module("model.blocks", "ModuleList", "model")
        for i in range(len(devices)):
            self._declare_block(f"model.blocks.{i}")
        sketch.module("model.norm", "LayerNorm", "model")
        sketch.module("model.out_head", "Linear", "model", site=head_site)
        self.weights: dict[str, int] = {}
        self.head_site = head_site

    def _declare_block(self, path: str) -> None:
        sketch = self.sketch
        sketch.module(path, "Block", "model.blocks")
        sketch.module(f"{path}.norm1", "LayerNorm", path)
        sketch.module(f"{path}.att", "Attention", path)
        for name in ("qkv", "out_proj"):
            sketch.module(f"{path}.att.{name}", "Linear", f"{path}.att")
        sketch.module(f"{path}.norm2", "LayerNorm", path)
        sketch.module(f"{path}.ff", "FeedForward", path)
        for name, type in (("up", "Linear"), ("gelu", "GELU"), ("down", "Linear")):
            sketch.module(f"{path}.ff.{name}", type, f"{path}.ff")

    def weight(self, name: str, shape: Shape, device: str, site: int = -1) -> int:
        if name not in self.weights:
            self.weights[name] = self.sketch.parameter(name, shape, device, site)
        return self.weights[name]

    def linear(self, path: str, x: int, features: tuple[int, int], device: str, tokens: int) -> int:
        wide, narrow = features
        site = self.head_site if path.endswith("out_head") else -1
        with self.sketch.running(path):
            weight = self.weight(f"{path}.weight", (narrow, wide), device, site)
            bias = self.weight(f"{path}.bias", (narrow,), device, site)
            turned = self.sketch.op("aten.t", [weight], (wide, narrow), device, kind="view", took=1_500, gap=2_000)
            took = 6_000 + wide * narrow // 60
            return self.sketch.op("aten.addmm", [bias, x, turned], (tokens, narrow), device, took=took)

    def norm(self, path: str, x: int, device: str, tokens: int) -> int:
        with self.sketch.running(path):
            weight = self.weight(f"{path}.weight", (self.width,), device)
            shape = (tokens, self.width)
            return self.sketch.op("aten.native_layer_norm", [x, weight], shape, device, took=7_000)

    def block(self, i: int, x: int, tokens: int) -> int:
        sketch, width, device, path = self.sketch, self.width, self.devices[i], f"model.blocks.{i}"
        shape = (tokens, width)
        with sketch.running(path):
            y = self.norm(f"{path}.norm1", x, device, tokens)
            with sketch.running(f"{path}.att"):
                qkv = self.linear(f"{path}.att.qkv", y, (width, 3 * width), device, tokens)
                scores = sketch.op("aten.bmm", [qkv], (12, tokens, tokens), device, took=21_000)
                soft = sketch.op("aten._softmax", [scores], (12, tokens, tokens), device, took=12_000)
                mixed = sketch.op("aten.bmm", [soft, qkv], shape, device, took=19_000)
                y = self.linear(f"{path}.att.out_proj", mixed, (width, width), device, tokens)
            x = sketch.op("aten.add", [x, y], shape, device, took=5_000)
            y = self.norm(f"{path}.norm2", x, device, tokens)
            with sketch.running(f"{path}.ff"):
                y = self.linear(f"{path}.ff.up", y, (width, 4 * width), device, tokens)
                with sketch.running(f"{path}.ff.gelu"):
                    y = sketch.op("aten.gelu", [y], (tokens, 4 * width), device, took=11_000)
                y = self.linear(f"{path}.ff.down", y, (4 * width, width), device, tokens)
            return sketch.op("aten.add", [x, y], shape, device, took=5_000)


CLASSIFY = """%%devtrace --simulate cuda:1
def classify(batch):
    x = model.tok_emb(batch)
    for block in model.blocks:
        x = block(x)
    return model.out_head(x[:, -1])

batch, target = next(iter(loader))
logits = classify(batch.to(device))
loss = F.cross_entropy(logits, target.to(device))"""


def failing(blocks: int = 6) -> Trace:
    """DESIGN 1: the head was replaced after model.to(device)."""
    sketch = Sketch("In[7]")
    lines = CLASSIFY.split("\n")
    sketch.device("cpu"), sketch.device("cuda:0")
    sketch.source(4, 'device = torch.device("cuda")\nmodel.to(device)')
    sketch.source(5, "model.out_head = nn.Linear(768, 2)")
    sketch.source(7, CLASSIFY)
    moved = sketch.at(4, 2, "model.to(device)")
    born = sketch.at(5, 1, "model.out_head = nn.Linear(768, 2)", "nn.Linear(768, 2)")
    model = Transformer(sketch, ["cuda:0"] * blocks, "cpu", head_site=born)
    sketch.builder.append("moves", module=0, site=moved, op=-1, device=sketch.device("cuda:0"), tensors=20)
    sketch.phase = "other"
    sketch.site = sketch.at(7, 8, lines[7])
    batch = sketch.op("aten.stack", [], (8, 128), "cpu", dtype="int64", took=60_000)
    sketch.site = sketch.at(7, 9, lines[8], "batch.to(device)")
    batch = sketch.copy(batch, "cuda:0")
    sketch.phase = "forward"
    sketch.site = sketch.at(7, 3, lines[2], "model.tok_emb(batch)", "classify")
    with sketch.running("model.tok_emb"):
        table = model.weight("model.tok_emb.weight", (50257, 768), "cuda:0")
        x = sketch.op("aten.embedding", [table, batch], (1024, 768), "cuda:0", took=26_000)
    sketch.site = sketch.at(7, 5, lines[4], "block(x)", "classify")
    for i in range(blocks):
        x = model.block(i, x, 1024)
    sketch.site = sketch.at(7, 6, lines[5], "x[:, -1]", "classify")
    x = sketch.op("aten.select", [x], (8, 768), "cuda:0", kind="view", took=2_000)
    sketch.site = use = sketch.at(7, 6, lines[5], "model.out_head(x[:, -1])", "classify")
    with sketch.running("model.out_head"):
        weight = model.weight("model.out_head.weight", (2, 768), "cpu", born)
        bias = model.weight("model.out_head.bias", (2,), "cpu", born)
        turned = sketch.op("aten.t", [weight], (768, 2), "cpu", kind="view", took=1_500)
        sketch.op("aten.addmm", [bias, x, turned], (8, 2), "cuda:0", fails=True)
    op = sketch.builder.count("ops") - 1
    text = (
        "Expected all tensors to be on the same device, but got mat1 is on cuda:0, different from other tensors on cpu"
    )
    sketch.builder.append("errors", op=op, type="RuntimeError", message=text)
    return sketch.trace([head_finding(use, op, born, moved, others=57, file="In[5]")])


TRAIN = """%%devtrace
for step, (batch, target) in enumerate(loader):
    batch, target = batch.to(device), target.to(device)
    logits = model(batch)
    loss = F.cross_entropy(logits.flatten(0, 1), target.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())"""


def _step(sketch: Sketch, model: Transformer, lines: Sequence[str]) -> None:
    sketch.phase = "other"
    sketch.site = sketch.at(7, 3, lines[2], "batch.to(device)")
    batch = sketch.copy(sketch.tensor("cpu", 8, 128, dtype="int64"), "cuda:0")
    sketch.site = sketch.at(7, 3, lines[2], "target.to(device)")
    target = sketch.copy(sketch.tensor("cpu", 8, 128, dtype="int64"), "cuda:0")
    sketch.phase, begin = "forward", sketch.builder.count("ops")
    sketch.site = sketch.at(7, 4, lines[3], "model(batch)")
    with sketch.running("model"):
        with sketch.running("model.tok_emb"):
            table = model.weight("model.tok_emb.weight", (50257, 768), model.devices[0])
            x = sketch.op("aten.embedding", [table, batch], (1024, 768), model.devices[0], took=26_000)
        for i, device in enumerate(model.devices):
            if i and device != model.devices[i - 1]:
                x = sketch.copy(x, device)
            x = model.block(i, x, 1024)
        x = model.norm("model.norm", x, model.devices[-1], 1024)
        logits = model.linear("model.out_head", x, (768, 2000), model.head_device, 1024)
    sketch.site = sketch.at(7, 5, lines[4], "F.cross_entropy(logits.flatten(0, 1), target.flatten())")
    loss = sketch.op("aten.nll_loss_forward", [logits, target], (), model.head_device, took=15_000)
    end = sketch.builder.count("ops")
    sketch.phase = "backward"
    sketch.site = sketch.at(7, 7, lines[6], "loss.backward()")
    gradient = loss
    for forward in range(end - 1, begin - 1, -1):
        device = ("cpu", "cuda:0", "cuda:1")[sketch.builder.get("ops", forward, "device")]
        gradient = sketch.op("aten.mm", [gradient], (1024, 768), device, took=14_000, forward=forward)
    sketch.phase = "optimizer"
    sketch.site = sketch.at(7, 8, lines[7], "optimizer.step()")
    weights = list(model.weights.values())
    for at in range(0, len(weights), 16):
        device = model.devices[min(at * len(model.devices) // len(weights), len(model.devices) - 1)]
        sketch.op("aten._fused_adam_", weights[at : at + 16], (), device, took=45_000)
    sketch.phase = "other"
    sketch.site = sketch.at(7, 9, lines[8], "loss.item()")
    sketch.sync(loss)


def training(ops: int = 20_000, devices: Sequence[str] = ("cuda:0",) * 6) -> Trace:
    """A training loop that keeps its loss each step."""
    sketch = Sketch("In[7]")
    for device in ("cpu", *dict.fromkeys(devices)):
        sketch.device(device)
    sketch.source(7, TRAIN)
    model = Transformer(sketch, devices, devices[-1])
    lines = TRAIN.split("\n")
    steps = 0
    while sketch.builder.count("ops") < ops:
        _step(sketch, model, lines)
        steps += 1
    sync = finding(
        "host-sync",
        "warning",
        devices=["cuda:0", "cpu"],
        site=sketch.at(7, 9, lines[8], "loss.item()"),
        op=sketch.builder.count("ops") - 1,
        count=steps,
        message="loss.item() waits for the GPU at every step.",
        help="keep `loss.detach()` and read it once per epoch",
    )
    return sketch.trace([sync])


def pipeline() -> Trace:
    """A model over two devices: data crosses between block 2 and 3."""
    return training(1, ("cuda:0",) * 3 + ("cuda:1",) * 3)


def threads() -> Trace:
    """DataParallel: two replicas in threads of their own, interleaved in time."""
    sketch = Sketch("In[3]")
    for device in ("cpu", "cuda:0", "cuda:1"):
        sketch.device(device)
    sketch.source(3, "%%devtrace\nnet = nn.DataParallel(net)\noutputs = net(inputs)")
    sketch.module("net", "DataParallel")
    sketch.module("net.module", "Sequential", "net")
    for i in range(8):
        sketch.module(f"net.module.{i}", "Linear", "net.module")
    sketch.site = sketch.at(3, 3, "outputs = net(inputs)", "net(inputs)")
    whole = sketch.op("aten.randn", [], (64, 256), "cpu", kind="create")
    first, second = sketch.copy(whole, "cuda:0"), sketch.copy(whole, "cuda:1")
    main = sketch.thread
    workers = [sketch.builder.append("threads", name=f"Thread-{i} (_worker)", rank=0) for i in (1, 2)]
    for i in range(8):
        for worker, device in zip(workers, ("cuda:0", "cuda:1"), strict=True):
            sketch.thread = worker
            x = first if device == "cuda:0" else second
            with sketch.running(f"net.module.{i}"):
                y = sketch.op("aten.addmm", [x], (32, 256), device, took=15_000, gap=1_000)
                y = sketch.op("aten.relu", [y], (32, 256), device, took=6_000, gap=500)
            first, second = (y, second) if device == "cuda:0" else (first, y)
    sketch.thread = main
    sketch.op("aten.cat", [first, sketch.copy(second, "cuda:0")], (64, 256), "cuda:0")
    return sketch.trace()


def timed(*spans: tuple[int, int]) -> Trace:
    """Ops with these starts and durations, on one device."""
    sketch = Sketch("times")
    device = sketch.device("cuda:0")
    for at, (start, duration) in enumerate(spans):
        sketch.builder.append("ops", name=f"aten.op{at}", start=start, duration=duration, device=device, kind="compute",
                             phase="forward", thread=sketch.thread, grad=1)  # fmt: skip
    return sketch.trace()


def million(ops: int = 1_000_000) -> Trace:
    """One step of a two-device training loop, many times over."""
    return repeated(training(1, ("cuda:0",) * 6 + ("cuda:1",) * 6), ops)


def repeated(trace: Trace, ops: int) -> Trace:
    """Return the trace repeated until it has that many ops (whole columns at a time)."""
    times = -(-ops // len(trace.ops))
    span = int(trace.ops.ints("start")[-1] + trace.ops.ints("duration")[-1]) + 50_000
    per = {name: len(trace.table(name)) for name in ("ops", "tensors", "calls", "copies")}
    moving = {
        ("calls", "parent"): per["calls"],
        ("calls", "begin"): per["ops"],
        ("calls", "end"): per["ops"],
        ("tensors", "producer"): per["ops"],
        ("tensors", "source"): per["tensors"],
        ("ops", "start"): span,
        ("ops", "call"): per["calls"],
        ("ops", "inputs"): per["tensors"],
        ("ops", "outputs"): per["tensors"],
        ("ops", "forward"): per["ops"],
        ("copies", "op"): per["ops"],
        ("copies", "source"): per["tensors"],
    }
    values: dict[str, Mapping[str, Values]] = dict(trace.values)
    for table in per:
        values[table] = {
            name: _tiled(column, times, moving.get((table, name), 0)) for name, column in trace.values[table].items()
        }
    # Never grown: ops do not overlap.
    shrunk = np.random.default_rng(7).uniform(0.6, 1, times * per["ops"]) * cast(Ints, values["ops"]["duration"])
    values["ops"] = {**values["ops"], "duration": shrunk.astype(np.int64)}
    findings = tuple({**found, "count": times} for found in trace.findings or ())
    return Trace(trace.strings, values, trace.title, trace.recorded, trace.producer, findings=findings)


def _tiled(values: Values, times: int, step: int) -> Values:
    if not isinstance(values, Lists):
        return _tiled_ints(values, times, step)
    starts = np.arange(times, dtype=np.int64)[:, None] * len(values.flat) + values.offsets[None, :-1]
    offsets = np.append(starts.reshape(-1), times * len(values.flat))
    return Lists(offsets, _tiled_ints(values.flat, times, step))


def _tiled_ints(values: Ints, times: int, step: int) -> Ints:
    shifts = np.arange(times, dtype=np.int64)[:, None] * step
    tiled = np.where(values[None, :] >= 0, values[None, :] + shifts, values[None, :])
    return cast(Ints, tiled.reshape(-1).astype(values.dtype))


SCENES: dict[str, Callable[[], Trace]] = {
    "failing": failing,
    "training": training,
    "pipeline": pipeline,
    "threads": threads,
    "hundred": lambda: million(100_000),
    "million": million,
}


def main(folder: str, *names: str) -> None:
    for name in names or SCENES:
        path = Path(folder) / f"{name}.devtrace"
        path.parent.mkdir(parents=True, exist_ok=True)
        devtrace_format.save(SCENES[name](), path)
        print(f"{path}  {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
