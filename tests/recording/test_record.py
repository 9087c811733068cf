"""What a recording holds, on real programs."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

import pytest
import torch
from torch import nn

import devtrace
from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.recording.recording import Recording
from devtrace.trace.checks import broken_rule
from devtrace.trace.ids import OpId
from devtrace.trace.rows import Op
from devtrace.trace.tables import TraceData


def named(trace: TraceData, name: str) -> list[Op]:
    return [op for op in trace.ops if op.name == name]


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(8, 8)
        self.head = nn.Linear(8, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.head(self.body(x).relu())
        return out


def test_an_op_knows_its_tensors_its_line_and_its_module() -> None:
    model, x = Net(), torch.rand(4, 8)
    with devtrace.record(name="step") as recording:
        model(x)
    trace = recording.trace
    assert trace.title == "step"
    first, last = named(trace, "aten.addmm")
    assert [tensor.name for tensor in first.inputs] == ["model.body.bias", "", "model.body.weight"]
    assert [tensor.shape for tensor in first.inputs] == [(8,), (4, 8), (8, 8)]
    assert [tensor.role for tensor in last.inputs] == ["parameter", "", ""]
    assert last.outputs[0].dtype == "float32"
    assert last.outputs[0].bytes == 4 * 2 * 4
    assert last.outputs[0].producer == last
    assert last.device == "cpu"
    assert (last.kind, last.phase, last.grad) == ("compute", "forward", 1)
    assert last.site is not None
    assert last.site.text == "self.head(self.body(x).relu())"
    assert last.site.function == "Net.forward"
    assert last.call is not None
    assert last.call.module.path == "model.head"
    assert last.call.parent is not None
    assert last.call.parent.module.path == "model"
    assert broken_rule(trace) is None


def test_the_failing_op_is_the_last_row_and_its_inputs_show_why() -> None:
    with pytest.raises(RuntimeError, match="same device"), devtrace.record(simulate="cuda:2") as recording:  # noqa: PT012
        model = Net().to("cuda:0")
        model.head = nn.Linear(8, 2)
        model(torch.rand(4, 8, device="cuda:0"))
    trace = recording.trace
    op = trace.ops[-1]
    assert op.name == "aten.addmm"
    assert op.duration == -1
    assert op.device == "cuda:0"
    assert op.outputs == ()
    assert [(tensor.device, tensor.name) for tensor in op.inputs] == [
        ("cpu", "model.head.bias"),
        ("cuda:0", ""),
        ("cpu", ""),
    ]
    assert op.inputs[2].source is not None
    assert op.inputs[2].source.name == "model.head.weight"
    (error,) = trace.errors
    assert (error.op, error.type) == (op, "RuntimeError")
    assert trace.devices[1].simulated
    assert not trace.devices[0].simulated
    assert broken_rule(trace) is None


def test_a_copy_between_devices_is_a_row_with_its_bytes() -> None:
    with devtrace.record(simulate="cuda:2") as recording:
        x = torch.ones(10).to("cuda:1", non_blocking=True)
        x.cpu()
        x.sum().item()
    trace = recording.trace
    assert [(c.from_, c.to, c.bytes, c.non_blocking) for c in trace.copies] == [
        ("cpu", "cuda:1", 40, 1),
        ("cuda:1", "cpu", 40, 0),
    ]
    assert [op.kind for op in trace.ops] == ["create", "copy", "copy", "compute", "sync"]
    copied = trace.copies[0].op.outputs[0]
    assert copied.source is not None
    assert copied.source.device == "cpu"


def test_a_copy_has_the_row_of_the_tensor_that_it_carried_whichever_input_that_is() -> None:
    with devtrace.record(simulate="cuda:1") as recording:
        batch, state, more = torch.ones(2), torch.zeros(2, device="cuda"), torch.zeros(3, device="cuda")
        batch.cuda()
        state.copy_(batch)
        torch._foreach_copy_([state, more], [batch, torch.ones(3)])
        torch.tensor([1, 2], device="cuda")
    queries, copies = TraceQueries(recording.trace), recording.trace.copies
    made = [queries.outputs(op)[0] for op in map(OpId, range(len(recording.trace.ops))) if queries.kind(op) == "create"]
    row, other, of_list = made[0], made[3], made[4]
    assert copies.ints("source").tolist() == [row, row, row, other, of_list]
    carried = [queries.carried(op) for op in dict.fromkeys(copies.ints("op").tolist())]
    assert carried == [[row], [row], [row, other], [of_list]]


def test_what_a_legacy_constructor_makes_is_recorded_on_its_device_whatever_was_used_before() -> None:
    with devtrace.record(simulate="cuda:2") as recording:
        weight = torch.ones(2, 4, device="cuda:1")
        torch.FloatTensor(2, 4)
        torch.Tensor(2, 4)
        weight.new(2, 4)
    assert [op.outputs[0].device for op in recording.trace.ops] == ["cuda:1", "cpu", "cpu", "cuda:1"]


def test_a_backward_op_is_led_back_to_its_forward_line() -> None:
    w = torch.ones(3, requires_grad=True)
    with devtrace.record() as recording:
        y = w * 2
        loss = y.exp().sum()
        loss.backward()
    trace = recording.trace
    backward = [op for op in trace.ops if op.phase == "backward" and op.forward]
    assert {op.forward.name for op in backward if op.forward} == {"aten.mul.Tensor", "aten.exp", "aten.sum"}
    assert all(op.forward and op.site == op.forward.site for op in backward)


def doubled(x: torch.Tensor) -> torch.Tensor:
    return (x * 2).sin()


def forked(x: torch.Tensor) -> torch.Tensor:
    first, second = torch.jit.fork(doubled, x), torch.jit.fork(doubled, x + 1)
    both: torch.Tensor = torch.jit.wait(first) + torch.jit.wait(second)
    return both


def test_ops_on_threads_of_c_plus_plus_below_which_there_is_no_python_are_recorded_in_full() -> None:
    program, x = torch.jit.script(forked), torch.ones(3)
    with devtrace.record() as recording:
        program(x)
    ops = recording.trace.ops
    assert Counter(op.name for op in ops) == {
        "aten.add.Scalar": 1,
        "aten.mul.Scalar": 2,
        "aten.sin": 2,
        "aten.add.Tensor": 1,
    }
    assert {op.thread.name for op in ops if op.name == "aten.sin"} <= {"MainThread", "torch"}
    assert recording.report.notes == ()


def test_threads_that_the_block_starts_are_recorded_and_others_are_not() -> None:
    go, done = threading.Event(), threading.Event()

    def unrelated() -> None:
        go.wait()
        torch.ones(2).cos()
        done.set()

    class Worker(threading.Thread):
        def run(self) -> None:
            torch.ones(2).sin()

    other = threading.Thread(target=unrelated)
    other.start()
    with devtrace.record() as recording:
        worker = Worker(name="mine")
        worker.start()
        worker.join()
        go.set()
        done.wait()
    other.join()
    trace = recording.trace
    assert [(op.name, op.thread.name) for op in trace.ops] == [("aten.ones", "mine"), ("aten.sin", "mine")]
    assert trace.ops[0].site is not None


def test_optimizer_ops_have_their_phase_line_and_names() -> None:
    model = Net()
    optimizer = torch.optim.Adam(model.parameters())
    with devtrace.record() as recording:
        model(torch.rand(4, 8)).sum().backward()
        optimizer.step()
    trace = recording.trace
    steps = [op for op in trace.ops if op.phase == "optimizer"]
    assert {op.site.text for op in steps if op.site} == {"optimizer.step()"}
    names = {tensor.name for op in steps for tensor in op.inputs}
    assert {"model.head.weight", "model.head.weight.grad", "model.head.weight.exp_avg"} <= names


class Refusing(torch.optim.SGD):
    """Fails after it has worked."""

    def step(self, closure: Any = None) -> Any:
        super().step()
        raise ValueError


@pytest.mark.parametrize("within", [nn.Identity(), None], ids=["in a module's call", "in no module's call"])
def test_an_optimizer_that_fails_takes_its_phase_and_line_with_it(within: nn.Module | None) -> None:
    model = Net()
    optimizer = Refusing(model.parameters(), lr=0.1, foreach=True)

    def fail(*_: Any) -> None:
        with pytest.raises(ValueError):  # noqa: PT011 (it has no text)
            optimizer.step()
        torch.ones(1).sin()

    with devtrace.record() as recording:
        model(torch.rand(4, 8)).sum().backward()
        if within is None:
            fail()
        else:
            handle = within.register_forward_pre_hook(fail)
            within(torch.ones(1))
            handle.remove()
        torch.ones(1).cos()
    ops = recording.trace.ops
    assert [op.name for op in ops if op.phase == "optimizer"] == ["aten._foreach_add_.List"]
    after = {op.name: op.site.text for op in ops if op.name in ("aten.sin", "aten.cos") and op.site}
    assert after == {"aten.sin": "torch.ones(1).sin()", "aten.cos": "torch.ones(1).cos()"}


def test_what_an_optimizer_does_after_its_closure_is_still_its_own() -> None:
    model = Net()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss: torch.Tensor = model(torch.ones(4, 8)).square().sum()
        loss.backward()
        return loss

    with devtrace.record() as recording:
        optimizer.step(closure)
    assert recording.trace.ops[-1].phase == "optimizer"
    assert {op.phase for op in named(recording.trace, "aten.addmm")} == {"forward"}


def test_an_optimizer_within_an_optimizer_leaves_the_outer_one_its_phase() -> None:
    class Outer(torch.optim.Optimizer):
        def __init__(self, inner: torch.optim.Optimizer) -> None:
            super().__init__(inner.param_groups, {})
            self.inner = inner

        def step(self, closure: Any = None) -> None:  # type: ignore[override]
            self.inner.step()
            with torch.no_grad():
                self.param_groups[0]["params"][0].mul_(2)

    model = Net()
    optimizer = Outer(torch.optim.SGD(model.parameters(), lr=0.1))
    with devtrace.record() as recording:
        model(torch.rand(4, 8)).sum().backward()
        optimizer.step()
        torch.ones(1)
    phases = [op.phase for op in recording.trace.ops]
    assert named(recording.trace, "aten.mul_.Tensor")[0].phase == "optimizer"
    assert phases[-1] != "optimizer"


def ranks() -> list[int]:
    with devtrace.record() as recording:
        torch.ones(1)
    return [thread.rank for thread in recording.trace.threads]


def test_threads_have_the_rank_of_their_process_in_its_job_which_a_process_group_knows_best(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert ranks() == [3]
    torch.distributed.init_process_group("gloo", store=torch._C._distributed_c10d.HashStore(), rank=0, world_size=1)
    try:
        assert ranks() == [0]
    finally:
        torch.distributed.destroy_process_group()
    monkeypatch.delenv("WORLD_SIZE")
    assert ranks() == [-1]


def test_a_tensor_of_one_recording_keeps_its_birth_in_the_next() -> None:
    with devtrace.record():
        x = torch.ones(3)
    with devtrace.record() as second:
        x + 1
    seen = second.trace.ops[0].inputs[0]
    assert seen.producer is None
    assert seen.site is not None
    assert seen.site.text == "torch.ones(3)"


def test_a_recording_inside_of_another_has_its_ops_to_itself() -> None:
    with devtrace.record() as outer:
        x = torch.ones(2)
        with devtrace.record() as inner:
            x.sin()
        x.cos()
    assert [op.name for op in inner.trace.ops] == ["aten.sin"]
    assert [op.name for op in outer.trace.ops] == ["aten.ones", "aten.cos"]
    assert len(outer.trace.notes) == 1
    assert broken_rule(outer.trace) is None


def test_a_line_that_python_rewrites_as_it_gets_hot_stays_one_site() -> None:
    with devtrace.record() as recording:
        total = 0.0
        for value in torch.rand(40):
            total += float(value)
    reads = [op for op in recording.trace.ops if op.kind == "sync" or op.name == "aten._local_scalar_dense"]
    assert len(reads) == 40
    assert len({op.site.id for op in reads if op.site}) == 1


def test_a_trace_is_not_made_while_ops_still_come_in() -> None:
    recording = Recording(1000, {})
    recording.start()
    try:
        with pytest.raises(RuntimeError, match="of a running recording"):
            recording.finish("", None, lambda _: False)
        torch.ones(1)
        recording.halt()
        torch.ones(1)
        trace = recording.finish("", None, lambda _: False).trace
    finally:
        recording.stop()
    assert [op.name for op in trace.ops] == ["aten.ones"]
