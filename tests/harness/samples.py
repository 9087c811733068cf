"""Traces made by hand for tests that only read one: what a recorder would have written, without running anything."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from devtrace.api.results import Trace
from devtrace.trace.builder import TraceBuilder
from devtrace.trace.curve import Curve, Part
from devtrace.trace.ids import OpId, SiteId, TensorId
from devtrace.trace.rows import Op, Tensor
from traces import head_finding

FORWARD = ("aten.addmm.default", "aten.relu.default", "aten.addmm.default", "aten.mse_loss.default")
BACKWARD = ("aten.mse_loss_backward.default", "aten.mm.default", "aten.threshold_backward.default", "aten.mm.default")


class Made:
    """A builder with the shortcuts that all traces made by hand need."""

    def __init__(self, title: str = "In[7]", rank: int = -1) -> None:
        self.builder = TraceBuilder(title, "2026-11-21T12:00:00+00:00", "devtrace 0.1.0")
        self.clock = 0
        self.main = self.builder.append("threads", name="MainThread", rank=rank)

    def device(self, name: str) -> int:
        return self.builder.device(name, simulated=name.startswith("cuda"))

    def tensor(self, device: str, *shape: int, **fields: object) -> TensorId:
        size = math.prod(shape) * {"int64": 8}.get(str(fields.get("dtype")), 4)
        given = {"dtype": "float32", "bytes": size, "producer": -1, "site": -1, "source": -1} | fields
        shape_ = self.builder.shape(shape)
        return TensorId(self.builder.append("tensors", device=self.device(device), shape=shape_, **given))


class Sample(Made):
    """A trace of which each op is as long as it is told, one after the other."""

    def site(self, line: int, text: str, cell: int = 7) -> SiteId:
        row = self.builder.append(
            "sites",
            file=f"<cell {cell}>",
            line=line,
            column=4,
            end_line=line,
            end_column=4 + len(text),
            function="<module>",
            text=text,
            cell=cell,
            cell_id=f"id-{cell}",
            package="",
            caller=-1,
        )
        return SiteId(row)

    def op(self, name: str, device: str, duration: int = 8_000, **fields: object) -> OpId:
        given = {
            "kind": "compute",
            "phase": "forward",
            "call": -1,
            "site": -1,
            "thread": self.main,
            "forward": -1,
            "grad": 1,
        } | fields
        id = self.builder.append(
            "ops", name=name, start=self.clock, duration=duration, device=self.device(device), **given
        )
        self.clock += max(duration, 0) + 2_000
        return OpId(id)

    def copy(self, source: TensorId, to: str, site: SiteId, **fields: object) -> TensorId:
        """A copy of a tensor to another device; the new tensor's id."""
        builder = self.builder
        bytes = builder.get("tensors", source, "bytes")
        op = self.op(
            "aten._to_copy.default",
            to,
            20_000,
            kind="copy",
            phase="other",
            site=site,
            inputs=(source,),
            outputs=(builder.count("tensors"),),
            **fields,
        )
        from_ = builder.get("tensors", source, "device")
        ends = {"from": from_, "to": self.device(to), "source": source}
        builder.append("copies", op=op, bytes=bytes, pinned=0, non_blocking=0, **ends)
        row = builder.append(
            "tensors",
            device=self.device(to),
            dtype="float32",
            shape=builder.get("tensors", source, "shape"),
            bytes=bytes,
            producer=op,
            site=-1,
            source=source,
        )
        return TensorId(row)


def training(steps: int = 6, *, failing: bool = True) -> Trace:
    """A loop on cuda:0 that moves each batch; at its end an evaluation in which a head left on the CPU meets cuda:0."""
    sample = Sample()
    builder = sample.builder
    move, forward, back, step = (
        sample.site(line, text)
        for line, text in (
            (3, "x = x.to(device)"),
            (4, "loss = model(x).pow(2).mean()"),
            (5, "loss.backward()"),
            (6, "opt.step()"),
        )
    )
    sample.device("cpu")
    model = builder.append("modules", path="model", type="Net", parent=-1, site=forward, op=-1, ran=1)
    layers = [
        builder.append("modules", path=f"model.{name}", type=type, parent=model, site=forward, op=-1, ran=1)
        for name, type in (("encoder", "Linear"), ("out_head", "Linear"))
    ]
    weight = sample.tensor("cuda:0", 768, 64, role="parameter", name="model.encoder.weight")
    for at in range(steps):
        batch = sample.tensor("cpu", 32, 768, name="x")
        now = sample.copy(batch, "cuda:0", move)
        begin = builder.count("ops")
        call = builder.append("calls", module=model, parent=-1, begin=begin, end=begin + 4, thread=0, training=1)
        inner = builder.append("calls", module=layers[0], parent=call, begin=begin, end=begin + 2, thread=0, training=1)
        ids = []
        for number, name in enumerate(FORWARD):
            inputs = (now, weight) if "addmm" in name else (now,)
            now = sample.tensor("cuda:0", 32, 64, producer=builder.count("ops"))
            ids.append(
                sample.op(
                    name,
                    "cuda:0",
                    9_000,
                    site=forward,
                    inputs=inputs,
                    outputs=(now,),
                    call=inner if number < 2 else call,
                )
            )
        for name, of in zip(BACKWARD, reversed(ids), strict=True):
            sample.op(name, "cuda:0", 12_000, site=back, phase="backward", forward=of, grad=0)
        sample.op("aten._foreach_add_.List", "cuda:0", 15_000, site=step, phase="optimizer", grad=0)
        if at % 3 == 2:
            sample.op("aten._local_scalar_dense.default", "cuda:0", 30_000, kind="sync", phase="other", inputs=(now,))
    builder.append("ledger", site=forward, ops=(0, 4 * steps), h2d=0, d2h=0, d2d=0, syncs=0, cpu_compute=0, bytes=0)
    builder.append(
        "ledger", site=move, ops=(0, steps), h2d=steps, d2h=0, d2d=0, syncs=0, cpu_compute=0, bytes=98304 * steps
    )
    if failing:
        _fail(sample, layers[1])
    return Trace.of(builder.build())


def _fail(sample: Sample, head: int) -> None:
    builder = sample.builder
    site, born, moved = (
        sample.site(6, "self.out_head(x)"),
        sample.site(1, "model.out_head = nn.Linear(768, 2)", 5),
        sample.site(1, "model.to(device)", 4),
    )
    weight = sample.tensor("cpu", 2, 64, role="parameter", name="model.out_head.weight", site=born)
    hidden = sample.tensor("cuda:0", 32, 64, name="x")
    at = builder.count("ops")
    call = builder.append("calls", module=head, parent=-1, begin=at, end=at + 1, thread=0, training=0)
    op = sample.op("aten.addmm.default", "cuda:0", -1, site=site, call=call, inputs=(hidden, weight))
    message = "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"
    builder.append("errors", op=op, type="RuntimeError", message=message)
    finding = head_finding(site, op, born, moved)
    culprit = finding["culprit"] | {"names": ["model.out_head.weight"], "shape": [2, 64]}
    builder.findings = (finding | {"culprit": culprit, "edits": []},)


def facts_of(op: Op) -> list[Any]:
    """Return an op's fields, without row ids."""
    return [
        op.name, op.start, op.duration, op.device, op.kind, op.phase, op.module and op.module.path, str(op.site),
        [_tensor(tensor) for tensor in op.inputs], [_tensor(tensor) for tensor in op.outputs],
    ]  # fmt: skip


def _tensor(tensor: Tensor) -> list[Any]:
    source = tensor.source and _tensor(tensor.source)
    return [tensor.device, tensor.shape, tensor.dtype, tensor.bytes, tensor.name, str(tensor.site), source]


def with_memory(limit: int) -> Trace:
    """A trace of two ops whose device held 100 bytes of parameters, then 500 of activations too."""
    sample = Sample()
    for line in (1, 2):
        sample.op("aten.addmm.default", "cuda:0", site=sample.site(line, "model(x)"))
    parts = (
        Part("parameter", "model.blocks", np.array([100, 100])),
        Part("activation", "model.blocks", np.array([0, 500])),
    )
    return Trace.of(replace(sample.builder.build(), memory=(Curve("cuda:0", limit, True, np.arange(2), parts),)))


def memory_of_steps() -> Trace:
    """A trace of three steps of a model under a limit: what each kind of memory was over time."""
    sample = Sample()
    for step in range(3):
        for line, name in enumerate(
            ("addmm", "relu", "addmm", "mse_loss", "mse_loss_backward", "mm", "_foreach_add_"), 1
        ):
            sample.op(f"aten.{name}.default", "cuda:0", site=sample.site(line, f"step {step}"))
    wave = np.array([1, 2, 3, 4, 3, 1, 0]) * 60
    later = np.array([0] * 6 + [1] * 15) * 240
    kinds = {
        ("parameter", "model.blocks"): np.full(21, 90),
        ("parameter", "model.head"): np.full(21, 30),
        ("optimizer-state", "optimizer"): later,
        ("gradient", "model"): np.tile([0, 0, 0, 0, 60, 120, 120], 3),
        ("named", "losses"): np.repeat([0, 20, 40], 7),
        ("activation", "model.blocks"): np.tile(wave, 3),
        ("activation", "model.head"): np.tile(wave // 4, 3),
        ("temporary", ""): np.tile([0, 0, 0, 30, 30, 0, 0], 3),
    }
    parts = tuple(Part(kind, name, sizes << 20) for (kind, name), sizes in kinds.items())
    curve = Curve("cuda:0", 1 << 30, True, np.arange(21), parts)
    return Trace.of(replace(sample.builder.build(), memory=(curve,)))
