"""Traces made by hand for tests, small enough to read: the story of DESIGN 1, and what a format must also carry."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from devtrace.api.results import Trace
from devtrace.diagnosis.store import report_of, with_report
from devtrace.trace.builder import TraceBuilder

CELL = """%%devtrace
x = torch.randn(4, 768, device=device)
class Head: pass
model(x)
def forward(self, x):
    return self.out_head(x)
"""


def new_builder(title: str = "") -> TraceBuilder:
    return TraceBuilder(title=title, recorded="2026-11-21T12:00:00+00:00", producer="devtrace test")


def empty_trace() -> Trace:
    return Trace.of(new_builder().build())


def head_trace() -> Trace:
    """In[7] of DESIGN 1: a head replaced after model.to(device), used with an activation on cuda:0."""
    b = new_builder("In[7]")
    cpu, cuda = b.device("cpu"), b.device("cuda:0", simulated=True)
    made = _site(b, 5, 1, "model.out_head = nn.Linear(768, 2)", "<module>")
    moved = _site(b, 4, 1, "model.to(device)", "<module>")
    called = _site(b, 7, 4, "model(x)", "<module>")
    drawn = _site(b, 7, 2, "torch.randn(4, 768, device=device)", "<module>")
    failed = _site(b, 7, 6, "self.out_head(x)", "forward")
    b.append("sources", file="<cell 7>", text=CELL, line=1, cell=7, cell_id="c7")
    model = b.append("modules", path="model", type="GPTModel", op=-1, ran=1)
    b.append("modules", path="model.trf", type="Linear", parent=model, op=-1, ran=1)
    head = b.append("modules", path="model.out_head", type="Linear", parent=model, site=made, op=-1, ran=1)
    thread = b.append("threads", name="MainThread", rank=0)
    outer = b.append("calls", module=model, begin=1, end=4, thread=thread, training=1)
    inner = b.append("calls", module=1, parent=outer, begin=1, end=3, thread=thread, training=1)
    last = b.append("calls", module=head, parent=outer, begin=3, end=4, thread=thread, training=1)
    x = tensor(b, cuda, (4, 768), producer=0, name="x")
    weight = tensor(b, cuda, (768, 768), role="parameter", name="model.trf.weight")
    turned = tensor(b, cuda, (768, 768), producer=1, source=weight)
    hidden = tensor(b, cuda, (4, 768), producer=2)
    bias = tensor(b, cpu, (2,), role="parameter", name="model.out_head.bias", site=made)
    rows = tensor(b, cpu, (768, 2), role="parameter", name="model.out_head.weight", site=made)
    common = {"thread": thread, "grad": 1}
    b.append("ops", name="aten.randn", start=0, duration=9000, device=cuda, kind="create", phase="other", site=drawn,
             outputs=(x,), **common)  # fmt: skip
    b.append("ops", name="aten.t", start=12000, duration=900, device=cuda, kind="view", phase="forward", call=inner,
             site=called, inputs=(weight,), outputs=(turned,), **common)  # fmt: skip
    b.append("ops", name="aten.mm", start=14000, duration=30000, device=cuda, kind="compute", phase="forward",
             call=inner, site=called, inputs=(x, turned), outputs=(hidden,), **common)  # fmt: skip
    op = b.append("ops", name="aten.addmm", start=50000, duration=-1, device=cuda, kind="compute", phase="forward",
                  call=last, site=failed, inputs=(bias, hidden, rows), outputs=(), **common)  # fmt: skip
    b.append("moves", module=model, site=moved, op=-1, device=cuda, tensors=19)
    b.append("errors", op=op, type="RuntimeError", message="Expected all tensors to be on the same device, ...")
    b.append("ledger", site=drawn, ops=(0, 1), h2d=0, d2h=0, d2d=0, syncs=0, cpu_compute=0, bytes=0)
    b.append("ledger", site=called, ops=(0, 2), h2d=0, d2h=0, d2d=0, syncs=0, cpu_compute=0, bytes=0)
    b.append("ledger", site=failed, ops=(0, 1), h2d=0, d2h=0, d2d=0, syncs=0, cpu_compute=0, bytes=0)
    b.findings = (head_finding(failed, op, made, moved),)
    return Trace.of(b.build())


def half_trace() -> Trace:
    """A model in half precision, and the whole head that was put on after its cast."""
    b = new_builder("In[3]")
    cpu = b.device("cpu")
    made = _site(b, 2, 2, "model.head = nn.Linear(8, 2)", "<module>")
    cast = _site(b, 2, 1, "model.bfloat16()", "<module>")
    called = _site(b, 3, 2, "model(x)", "<module>")
    model = b.append("modules", path="model", type="Net", op=-1, ran=1)
    layers = [
        b.append("modules", path=f"model.{name}", type="Linear", parent=model, op=-1, ran=1)
        for name in ("body.0", "body.1", "head")
    ]
    thread = b.append("threads", name="MainThread", rank=0)
    outer = b.append("calls", module=model, begin=0, end=3, thread=thread, training=1)
    x = tensor(b, cpu, (4, 8), dtype="bfloat16", bytes=64, name="x")
    for at, layer in enumerate(layers):
        call = b.append("calls", module=layer, parent=outer, begin=at, end=at + 1, thread=thread, training=1)
        kind: dict[str, int | str] = {} if at == 2 else {"dtype": "bfloat16", "bytes": 128}
        name = ("model.body.0", "model.body.1", "model.head")[at]
        weight = tensor(b, cpu, (8, 2 if at == 2 else 8), role="parameter", name=f"{name}.weight", **kind)
        made_of, x = x, -1 if at == 2 else tensor(b, cpu, (4, 8), dtype="bfloat16", bytes=64, producer=at)
        b.append("ops", name="aten.mm", start=9000 * at, duration=-1 if at == 2 else 8000, device=cpu, kind="compute",
                 phase="forward", call=call, site=called, inputs=(made_of, weight), outputs=(x,) if at < 2 else (),
                 thread=thread, grad=1)  # fmt: skip
    b.append("moves", module=model, site=cast, op=-1, device=cpu, tensors=2)
    b.append("errors", op=2, type="RuntimeError", message="expected m1 and m2 to have the same dtype, but got: ...")
    b.append("ledger", site=called, ops=(3,), h2d=0, d2h=0, d2d=0, syncs=0, cpu_compute=0, bytes=0)
    b.findings = ({
        "rule": "dtype-mismatch", "severity": "error", "cause": "attached-after-cast",
        "devices": ["float32", "bfloat16"],
        "site": called, "op": 2, "count": 1, "bytes": 64,
        "culprit": {"name": "model.head.weight", "names": ["model.head.weight"], "device": "cpu", "shape": [8, 2],
                    "dtype": "float32", "born": made, "moved": cast, "chain": [made, called], "certainty": "seen"},
        "message": "`model.head.weight` is float32; the other 2 tensors of `model` are bfloat16. The cast of `model` "
        "ran before `model.head` was attached, so it stayed float32.",
        "help": "add `model.bfloat16()` below line 2",
        "edits": [{"file": "<cell 2>", "cell": 2, "line": 2, "before": "", "after": "model.bfloat16()"}],
    },)  # fmt: skip
    return Trace.of(b.build())


def odd_trace() -> Trace:
    """Text and numbers that break careless readers: markup, right-to-left, a lone surrogate, no dims, large times."""
    b = new_builder("<script>alert(1)</script>")
    cpu = b.device("cpu")
    site = _site(b, -1, 3, "\u202e\U0001f525 'quoted' \"twice\" \\ \x00\ud800 </style>", "f\n\tg")
    thread = b.append("threads", name="Thread-1 (\u05e9\u05dc\u05d5\u05dd)", rank=3)
    scalar = tensor(b, cpu, (), name="a.b[\"c\"]['d']")
    for at in range(30):
        b.append("ops", name=f"my.op{at % 3}", start=at * 10**12, duration=at - 1, device=cpu, kind="compute",
                 phase="other", site=site, thread=thread, inputs=(scalar,) * (at % 4), outputs=(), grad=0)  # fmt: skip
    b.append("copies", op=29, to=cpu, bytes=2**40, pinned=1, non_blocking=1, source=scalar, **{"from": cpu})
    b.append("autocasts", thread=thread, begin=3, end=9, device="cpu", dtype="bfloat16", enabled=1, site=site)
    b.truncated = 12345
    b.notes.append("the recorder left out 1 op: <b>bold</b>")
    return Trace.of(b.build())


def story_trace() -> Trace:
    """Return the head's trace as a recorder of today leaves it, with the lines beside its finding."""
    trace = head_trace()
    assert trace.findings is not None
    [finding] = trace.findings
    by_way_of = {**finding, "culprit": {**finding["culprit"], "chain": [0, 2, 4]}}
    report = report_of(replace(trace, findings=(by_way_of,)))
    return Trace.of(with_report(trace, report.findings, report.ledger, ()).trace)


def _site(b: TraceBuilder, cell: int, line: int, text: str, function: str) -> int:
    file = f"<cell {cell}>" if cell >= 0 else "/home/me/train.py"
    return b.append("sites", file=file, line=line, column=0, end_line=line, end_column=len(text), function=function,
                    text=text, cell=cell, cell_id=f"c{cell}" if cell >= 0 else "", package="")  # fmt: skip


def tensor(b: TraceBuilder, device: int, dims: tuple[int, ...], **fields: int | str) -> int:
    known = {"dtype": "float32", "bytes": 4 * math.prod(dims)}
    return b.append("tensors", device=device, shape=b.shape(dims), **{**known, **fields})


def head_finding(site: int, op: int, made: int, moved: int, others: int = 19, file: str = "<cell 5>") -> dict[str, Any]:
    """Return what is said of the head that was put on after a move of so many other tensors."""
    names = ["model.out_head.weight", "model.out_head.bias"]
    return {
        "rule": "device-mismatch", "severity": "error", "cause": "attached-after-move", "devices": ["cuda:0", "cpu"],
        "site": site, "op": op, "count": 1, "bytes": 0,
        "culprit": {"name": names[0], "names": names, "device": "cpu", "shape": [2, 768], "dtype": "float32",
                    "born": made, "moved": moved, "chain": [made, site], "certainty": "seen"},
        "message": f"model.out_head.weight and .bias are on cpu; the other {others} tensors of model are on cuda:0. "
        "It was attached to model after the move, which could not see it.",
        "help": "move it as you attach it: model.out_head = nn.Linear(768, 2).to(device)",
        "edits": [{"file": file, "cell": 5, "line": 1, "before": "model.out_head = nn.Linear(768, 2)",
                   "after": "model.out_head = nn.Linear(768, 2).to(device)"}],
    }  # fmt: skip
