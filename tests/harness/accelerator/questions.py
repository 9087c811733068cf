"""What the tests of a genuine device ask, each in the process where `accel:0` and `accel:1` are devices.

A module of its own: the process imports what it is asked to run by the name of its module.
"""

from __future__ import annotations

import gc
import re
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import accelerator
import devtrace
from devtrace.api.environment import describe
from devtrace.notebook import usage
from devtrace.notebook.inventory.inventory import drain, listing
from devtrace.trace.checks import broken_rule


def load() -> None:
    torch.set_num_threads(1)
    accelerator.load()


def copies_of(make: Callable[[str], Any], device: str) -> list[tuple[str, str, int, str]]:
    with devtrace.record() as recording:
        make(device)
    assert broken_rule(recording.trace) is None
    assert recording.trace.notes == ()
    assert recording.report.text
    return [(str(each.from_.name), str(each.to.name), each.bytes, each.op.kind) for each in recording.trace.copies]


def lists() -> list[list[tuple[str, str, int, str]]]:
    x = torch.ones(4, device="accel:1")
    makers: list[Callable[[str], Any]] = [
        lambda device: torch.tensor([1.0, 2.0], device=device),
        lambda device: x.new_tensor([1, 2]),
        lambda device: torch.as_tensor([1.0], device=device),
        lambda device: x[[0, 1]],
        lambda device: x.__setitem__([0, 1], 2.0),
        lambda device: x.__setitem__(0, 2.0),
        lambda device: torch.tensor([1.0, 2.0]),
        lambda device: torch.tensor([1.0, 2.0], device="meta"),
    ]
    return [copies_of(make, "accel:1") for make in makers]


def fit(*, repeated: bool = False) -> list[torch.Tensor]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)).to("accel:1")
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    for _ in range(2):
        x, target = torch.rand(2, 4).to("accel:1"), torch.zeros(2, dtype=torch.long, device="accel:1")
        out = checkpoint(model, x, use_reentrant=False) if repeated else model(x)
        loss = nn.functional.cross_entropy(out, target)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return [each.detach().cpu() for each in model.parameters()]


def sites_of_backward() -> list[tuple[str, int, list[str]]]:
    found = []
    for repeated in (False, True):
        with devtrace.record() as recording:
            fit(repeated=repeated)
        ops = [op for op in recording.trace.ops if op.phase == "backward"]
        alone = {op.site.text for op in ops if op.site is not None and op.forward is None and op.site.function == "fit"}
        without = [op.name for op in recording.trace.ops if op.site is None]
        found.append((" ".join(sorted(alone)), len(without), sorted({op.name for op in ops} & {"aten.addmm"})))
    return found


def names_of_threads() -> tuple[list[str], list[str]]:
    with devtrace.record() as recording:
        fit()
    return [thread.name for thread in threading.enumerate()], [thread.name for thread in recording.trace.threads]


def modules_of_backward() -> set[tuple[str, str]]:
    with devtrace.record() as recording:
        fit()
    assert broken_rule(recording.trace) is None
    ops = [op for op in recording.trace.ops if op.phase == "backward" and op.call is not None]
    assert all(op.forward is not None and op.forward.call.id == op.call.id for op in ops)
    return {(op.name, op.call.module.path) for op in ops}


def wrong_seed() -> tuple[str, str, str, tuple[str, ...], list[str]]:
    w = torch.ones(3, device="accel:0", requires_grad=True)
    with pytest.raises(RuntimeError), devtrace.record() as recording:
        (w * 2).backward(torch.ones(3))
    (finding,) = recording.report.findings
    assert finding.culprit is not None
    return finding.rule, finding.culprit.name, finding.cause, finding.devices, [edit.after for edit in finding.edits]


def waits_asked_for() -> tuple[list[tuple[str, str, str]], list[tuple[object, ...]]]:
    with devtrace.record() as recording:
        for _ in range(12):
            x = torch.ones(4, device="accel:0")
            torch.accelerator.synchronize()
            x += 1
    assert broken_rule(recording.trace) is None
    report = recording.report
    ops = {(op.name, op.kind, str(op.device)) for op in report.trace.ops if "synchronize" in op.name}
    found: list[tuple[object, ...]] = [(each.rule, each.severity, each.count, each.message) for each in report.findings]
    return sorted(ops), found


def block(device: str) -> None:
    x = torch.tensor([1.0, 2.0], device=device)
    x[[0, 1]].sum().item()
    torch.accelerator.synchronize()
    (x + 1).cpu()


def expected() -> list[str]:
    errors = []
    for device, limits in (("accel:0", (3, 2)), ("accel", (3, 2)), ("accel:0", (2, 1)), ("accel:1", (9, 9))):
        try:
            with devtrace.expect(device, copies=limits[0], syncs=limits[1]):
                block("accel:0")
            errors.append("")
        except devtrace.DeviceError as error:
            errors.append(
                " ".join(re.findall(r"[a-z-]+: got [^;]*", " ".join([str(error), *getattr(error, "__notes__", [])])))
            )
    return errors


def options_and_environment() -> tuple[str | None, str, str, str]:
    with pytest.raises(devtrace.DevtraceError) as refused:
        usage.cell_options("--expect acel:1")
    with devtrace.record(expect="acel:1") as recording:
        torch.ones(2) + 1
    return usage.cell_options("--expect accel:1").expect, str(refused.value), recording.report.text, describe()


def inventory() -> list[dict[str, Any]]:
    model = nn.Linear(4, 2).to("accel:1")
    steps = listing({"model": model, "batch": torch.ones(2, 4), "x": torch.ones(3, device="accel:0")})
    found: list[dict[str, Any]] = drain(steps)["devices"]
    return found


def surroundings() -> list[object]:
    gc.collect()
    memory = [accelerator.load().memory_allocated(index) for index in range(2)]
    return [torch._C._len_torch_dispatch_stack(), threading.enumerate(), memory, nn.Module.__call__, torch.ctc_loss]


def both_ways() -> tuple[list[bytes], list[bytes], bool]:
    plain = [each.numpy().tobytes() for each in fit()]
    before = surroundings()
    with devtrace.record():
        traced = [each.numpy().tobytes() for each in fit()]
    return plain, traced, surroundings() == before
