"""Everything torch does around eager code works as without us, and is recorded as far as torch shows it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import devtrace
import needs
from devtrace.recording.columns.operator_info import DIRECT, operators
from devtrace.trace.checks import broken_rule
from devtrace.trace.tables import TraceData
from modes import Ops


def traced(program: Callable[[], Any]) -> tuple[Any, TraceData]:
    with devtrace.record() as recording:
        result = program()
    assert broken_rule(recording.trace) is None
    return result, recording.trace


def names(trace: TraceData) -> list[str]:
    return [op.name for op in trace.ops]


class Backend:
    """Counts what torch.compile compiles, and runs it as it is."""

    def __init__(self) -> None:
        self.graphs: list[int] = []

    def __call__(self, graph: torch.fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
        self.graphs.append(len(graph.graph.nodes))
        return graph.forward


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize(
    ("make", "op"),
    [(lambda: lambda x: x.sin() + 1, "aten.sin"), (lambda: nn.Sequential(nn.Linear(3, 3), nn.ReLU()), "aten.relu")],
)
def test_a_program_is_compiled_once_before_a_recording_or_in_it(make: Any, op: str, before: bool) -> None:
    backend = Backend()
    compiled: Any = torch.compile(make(), backend=backend, fullgraph=True)
    x = torch.rand(2, 3)
    if before:
        compiled(x)
    result, trace = traced(lambda: compiled(x))
    assert torch.equal(result, compiled(x))
    assert len(backend.graphs) == 1
    assert op in names(trace)


def test_a_compiled_graph_is_the_same_traced_and_untraced() -> None:
    def compile_once(trace: bool) -> list[int]:
        torch._dynamo.reset()
        backend = Backend()
        model = nn.Sequential(nn.Linear(3, 3), nn.Dropout(), nn.Linear(3, 1))
        compiled = torch.compile(model, backend=backend)
        with devtrace.record() if trace else nullcontext():
            compiled(torch.rand(2, 3)).sum()
        return backend.graphs

    assert compile_once(True) == compile_once(False)


def test_cond_is_one_op() -> None:
    result, trace = traced(lambda: torch.cond(torch.tensor(True), lambda x: x + 1, lambda x: x - 1, (torch.ones(2),)))
    assert result.tolist() == [2, 2]
    assert names(trace) == ["aten.lift_fresh", "aten.ones", "cond"]
    assert [len(trace.ops[-1].inputs), len(trace.ops[-1].outputs)] == [2, 1]


def test_a_module_is_scripted_within_a_recording_that_replaced_what_it_calls() -> None:
    def losses() -> tuple[Any, Any]:
        scripted = torch.jit.script(nn.CTCLoss())
        scores = torch.arange(40.0).reshape(5, 2, 4).log_softmax(2)
        given = (scores, torch.ones(2, 2, dtype=torch.long), torch.tensor([5, 5]), torch.tensor([2, 2]))
        return scripted(*given), nn.CTCLoss()(*given)

    plain = losses()
    with devtrace.record():
        recorded = losses()
    assert torch.equal(torch.stack(recorded), torch.stack(plain))


def sum_of_norms(x: torch.Tensor) -> torch.Tensor:
    whole: torch.Tensor = torch.norm(x) + torch.linalg.norm(x)
    return whole


def test_norms_are_scripted_and_compiled_as_without_a_recording() -> None:
    with devtrace.record():
        scripted = torch.jit.script(sum_of_norms)
        compiled = torch.compile(sum_of_norms, backend="eager", fullgraph=True)
        assert torch.equal(compiled(torch.eye(3)), scripted(torch.eye(3)))


def test_jit_trace_works_with_a_note_that_it_is_not_recorded() -> None:
    def program() -> Any:
        y = torch.ones(2) * 3
        return torch.jit.trace(nn.Linear(2, 2), (torch.ones(1, 2),)), y + 1

    (module, _), trace = traced(program)
    assert module(torch.ones(1, 2)).shape == (1, 2)
    assert names(trace)[-1] == "aten.add.Tensor"
    assert any("jit.trace" in note for note in trace.notes)


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpointing_records_the_second_forward_at_its_own_line(reentrant: bool) -> None:
    layer = nn.Linear(2, 2)

    def block(x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = layer(x).tanh()
        return out

    def program() -> None:
        x = torch.ones(1, 2, requires_grad=True)
        checkpoint(block, x, use_reentrant=reentrant).sum().backward()

    _, trace = traced(program)
    tanh = [op for op in trace.ops if op.name == "aten.tanh"]
    assert [op.phase for op in tanh] == ["forward" if not reentrant else tanh[0].phase, "backward"]
    assert [op.site.text for op in tanh if op.site] == ["layer(x).tanh()"] * 2


def test_a_function_of_ones_own_keeps_the_lines_of_its_backward() -> None:
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, *grads: torch.Tensor) -> torch.Tensor:
            return grads[0].mul(2)

    def program() -> None:
        Double.apply(torch.ones(2, requires_grad=True)).sum().backward()  # type: ignore[no-untyped-call]

    _, trace = traced(program)
    (inside,) = [op for op in trace.ops if op.site and op.site.text == "grads[0].mul(2)"]
    assert inside.phase == "backward"


def test_vmap_and_grad() -> None:
    result, trace = traced(lambda: torch.vmap(torch.func.grad(lambda x: (x**2).sum()))(torch.ones(3, 2)))
    assert result.tolist() == [[2, 2]] * 3
    assert len(trace.ops)


def test_inference_mode_autocast_and_default_device() -> None:
    def program() -> torch.Tensor:
        layer = nn.Linear(2, 2)
        with torch.inference_mode():
            layer(torch.ones(1, 2))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out: torch.Tensor = layer(torch.ones(1, 2))
        with torch.device("meta"):
            torch.ones(3)
        return out

    result, trace = traced(program)
    assert result.dtype == torch.bfloat16
    assert "meta" in [str(device) for device in trace.devices]
    assert "aten.linear" in names(trace)


def test_a_profiler_inside() -> None:
    def program() -> int:
        with torch.profiler.profile() as profiler:
            torch.ones(3).sin()
        return len(profiler.events() or [])

    events, trace = traced(program)
    assert events
    assert names(trace)[-1] == "aten.sin"


def test_subclasses_and_layouts_of_all_kinds() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    def program() -> None:
        sparse = torch.eye(3).to_sparse()
        (sparse + sparse).to_dense()
        torch.eye(3).to_sparse_csr() @ torch.ones(3, 1)
        jagged = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(1, 3)], layout=torch.jagged)
        (jagged * 2).unbind()
        strided = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
        strided * 2
        torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8).dequantize()
        with FakeTensorMode() as mode:
            mode.from_tensor(torch.ones(3)).sin()
        torch.ones(2, dtype=torch.complex64).conj() * 1j

    _, trace = traced(program)
    assert {"aten.sin", "aten.dequantize.self"} <= set(names(trace))


def test_an_op_on_tensors_of_several_lengths_is_recorded() -> None:
    def program() -> None:
        nested = torch.nested.nested_tensor([torch.ones(2, 5), torch.ones(3, 5)])
        torch.nested.to_padded_tensor(nested.sin(), 0.0)

    _, trace = traced(program)
    (sine,) = (op for op in trace.ops if op.name == "aten.sin")
    assert [(tensor.shape, tensor.bytes) for tensor in (*sine.inputs, *sine.outputs)] == [((2, -1, -1), 0)] * 2
    assert trace.notes == ()


def test_lists_and_out_arguments_are_inputs_and_outputs() -> None:
    def program() -> None:
        a, b, out = torch.ones(2), torch.ones(3), torch.empty(2)
        torch.cat([a, b[torch.tensor([0, 2])]])
        torch._foreach_add_([a, b], 1)
        torch.add(a, a, out=out)

    _, trace = traced(program)
    indexed, joined, foreach, added = trace.ops[-4:]
    assert [len(op.inputs) for op in (indexed, joined)] == [2, 2]
    assert [tensor.shape for tensor in foreach.inputs] == [(2,), (3,)]
    assert added.outputs[0] in added.inputs
    assert added.outputs[0].producer is not None
    assert added.outputs[0].producer.name.startswith("aten.empty")


def test_masks_and_reads_are_syncs() -> None:
    def program() -> None:
        x = torch.rand(3)
        x[x > 0]
        x.nonzero()
        bool(x.sum() > 0)
        x[torch.tensor([0])]

    _, trace = traced(program)
    kinds = [
        (op.name, op.kind) for op in trace.ops if op.name.startswith(("aten.index", "aten.nonzero", "aten._local"))
    ]
    assert kinds == [
        ("aten.index.Tensor", "sync"),
        ("aten.nonzero", "sync"),
        ("aten._local_scalar_dense", "sync"),
        ("aten.index.Tensor", "compute"),
    ]


def test_births_of_tensors_made_of_other_things() -> None:
    import numpy as np

    def program() -> torch.Tensor:
        array = torch.from_numpy(np.ones(3))
        return array + torch.tensor([1.0, 2.0, 3.0])

    _, trace = traced(program)
    born = [tensor.site.text for tensor in trace.ops[-1].inputs if tensor.site]
    assert born == ["torch.from_numpy(np.ones(3))", "torch.tensor([1.0, 2.0, 3.0])"]


def test_a_pool_of_threads_started_inside() -> None:
    def program() -> None:
        with ThreadPoolExecutor(2, thread_name_prefix="pool") as pool:
            list(pool.map(lambda n: torch.ones(n).sum(), range(1, 9)))

    _, trace = traced(program)
    assert names(trace).count("aten.sum") == 8
    assert {thread.name.split("_")[0] for thread in trace.threads if thread.name != "MainThread"} == {"pool"}


def test_a_thread_that_goes_on_after_the_block_is_left_alone() -> None:
    running, go, done = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        torch.ones(2).cos()
        running.set()
        go.wait()
        torch.ones(2).sin()
        done.set()

    thread = threading.Thread(target=work)
    with devtrace.record() as recording:
        thread.start()
        running.wait()
    go.set()
    thread.join()
    assert done.is_set()
    assert names(recording.trace) == ["aten.ones", "aten.cos"]


def test_data_parallel_names_its_replicas() -> None:
    with devtrace.record(simulate="cuda:2") as recording:
        model = nn.DataParallel(nn.Linear(4, 2).to("cuda:0"), [0, 1])
        model(torch.rand(6, 4, device="cuda:0")).sum().backward()
    trace = recording.trace
    assert broken_rule(trace) is None
    labels = [thread.name for thread in trace.threads]
    assert [label.rsplit(", ", 1)[-1] for label in labels[1:]] == ["replica 0", "replica 1"]
    linears = [op for op in trace.ops if op.name == "aten.addmm"]
    assert {str(op.device) for op in linears} == {"cuda:0", "cuda:1"}
    assert {op.module.path for op in linears if op.module} == {"model.module"}


def ctc_loss(device: str, lengths: str) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    scores = torch.randn(7, 2, 6).to(device).requires_grad_()
    targets = torch.tensor([[1, 2], [3, 1]]).to(device)
    given = torch.tensor([7, 6]).to(lengths), torch.tensor([2, 2]).to(lengths)
    loss = nn.CTCLoss()(scores.log_softmax(-1), targets, *given)
    loss.backward()
    assert scores.grad is not None
    return loss.detach().cpu(), scores.grad.cpu()


def test_ctc_loss_takes_the_path_that_it_takes_without_a_mode() -> None:
    with devtrace.record() as recording:
        traced = ctc_loss("cpu", "cpu")
    assert "aten._ctc_loss" in {op.name for op in recording.trace.ops}
    for one, other in zip(traced, ctc_loss("cpu", "cpu"), strict=True):
        assert torch.equal(one, other)


def test_ctc_loss_on_a_device_takes_lengths_of_the_host_and_waits_for_those_of_the_device() -> None:
    with devtrace.record(simulate="cuda:1") as recording:
        of_host = ctc_loss("cuda", "cpu")
    assert [each.rule for each in recording.report.findings if each.severity == "error"] == []
    assert 16 not in [copy.bytes for copy in recording.trace.copies]
    with devtrace.record(simulate="cuda:1") as recording:
        of_device = ctc_loss("cuda", "cuda")
    assert [copy.bytes for copy in recording.trace.copies if str(copy.to.name) == "cpu"][:2] == [16, 16]
    for one, other in zip(of_host, of_device, strict=True):
        assert torch.equal(one, other)


def test_a_wait_for_a_stream_or_an_event_is_a_wait_for_its_device() -> None:
    with devtrace.simulate("cuda:2"), devtrace.record() as recording:
        stream, done, never = torch.cuda.Stream("cuda:1"), torch.cuda.Event(), torch.cuda.Event()
        x = torch.ones(3, device="cuda:0")
        done.record()
        stream.synchronize()
        done.synchronize()
        never.synchronize()
        torch.Event("cuda:1").synchronize()
        x += 1
    waits = [(op.name, op.kind, str(op.device)) for op in recording.trace.ops if "synchronize" in op.name]
    assert waits == [
        ("cuda.Stream.synchronize", "sync", "cuda:1"),
        ("cuda.Event.synchronize", "sync", "cuda:0"),
        ("cuda.Event.synchronize", "sync", "cuda:1"),
    ]
    assert [row.syncs for row in recording.report.ledger if row.syncs] == [1, 1, 1]
    assert {finding.severity for finding in recording.report.findings} == {"note"}


def test_the_classes_of_streams_and_events_are_as_they_were_after_a_recording() -> None:
    before = [torch.cuda.Stream.synchronize, torch.cuda.Event.synchronize]
    with devtrace.record():
        assert torch.cuda.Stream.synchronize is not before[0]
        assert torch.cuda.Stream.synchronize.__doc__ == before[0].__doc__
    assert [torch.cuda.Stream.synchronize, torch.cuda.Event.synchronize] == before


def test_a_list_of_truth_values_is_a_mask_that_its_device_counts() -> None:
    with devtrace.simulate("cuda:2"):
        x = torch.ones(4, device="cuda:0")
        with devtrace.record() as recording:
            x[[True, False, True, False]]
            x[[0, 1]]
    assert [(row.h2d, row.syncs) for row in recording.report.ledger] == [(1, 1), (1, 0)]


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(lambda x: x.cumprod(1), id="cumprod", marks=needs.torch_of((2, 13))),
        pytest.param(lambda x: x.max(), id="max"),
        pytest.param(lambda x: x.round().max(), id="max of equal ones"),
        pytest.param(lambda x: x.min(1)[0], id="min"),
        pytest.param(lambda x: x.median(), id="median"),
        pytest.param(lambda x: x.median(1)[0], id="median of rows"),
        pytest.param(lambda x: x.masked_fill(x > 0.5, 0.0), id="masked_fill"),
    ],
)
def test_a_backward_pass_that_takes_other_ops_under_a_mode_gives_the_same_gradient(
    function: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    def gradient() -> torch.Tensor:
        torch.manual_seed(0)
        x = torch.randn(7, 9, requires_grad=True)
        values = function(x)
        (values * torch.randn(values.shape)).sum().backward()
        assert x.grad is not None
        return x.grad

    with devtrace.record():
        traced = gradient()
    assert torch.equal(traced, gradient())


def every_direct_operator() -> list[torch.Tensor]:
    """Run every operator that the recorder calls by torch's own method, also with numbers for tensors."""
    torch.manual_seed(0)
    kinds = (torch.float32, torch.float64, torch.float16, torch.complex64, torch.int32)
    made = []
    for kind in kinds:
        x, y = (torch.arange(1, 13).reshape(3, 4).to(kind) for _ in range(2))
        made += [x.view(2, 6), x.expand(2, 3, 4), x.t(), x.transpose(0, 1), x.permute(1, 0), x.detach()]
        made += [x.unsqueeze(0), x.unsqueeze(0).squeeze(0), x.select(0, 1), x.clone(), x.sqrt()]
        made += [x.clone(memory_format=torch.contiguous_format), x.t().reshape(12), torch.add(x, y, alpha=2)]
        made += [2 * x, x * 2.5, 2 - x, x / 3, 3 / x, x + True, torch.sub(x, y, alpha=3), x * y, x / y, x - y]
        made += [x.clone().add_(y), x.clone().add_(2, alpha=3), x.clone().sub_(y), x.clone().mul_(y), x.clone().mul_(3)]
        if kind.is_floating_point:
            made += [x.relu(), x.clone().div_(y), x.clone().div_(2), x.clone().lerp_(y, 0.3), x * torch.tensor(2.0)]
            made += [x.clone().addcmul_(x, y, value=0.5), x.clone().addcdiv_(x, y, value=-0.5)]
    made.append(torch.where(torch.tensor([True, False]), 2.0, torch.zeros(2)))
    weight = torch.nn.Parameter(torch.rand(4, 4))
    (torch.rand(2, 4) @ weight * weight.sum()).sqrt().sum().backward()
    assert weight.grad is not None
    return [*made, weight.grad]


def test_what_runs_below_the_recorder_is_what_runs_without_it() -> None:
    def operator_and_arguments(*given: Any) -> list[str]:
        return [str(each) for each in given]

    with Ops(operator_and_arguments) as plain:
        expected = every_direct_operator()
    with Ops(operator_and_arguments) as below:
        values, trace = traced(every_direct_operator)
    assert below.seen == plain.seen
    assert all(
        torch.equal(one, other) and one.dtype == other.dtype for one, other in zip(values, expected, strict=True)
    )
    assert {*DIRECT} <= {*names(trace)}


def test_operators_that_are_called_by_torchs_method_have_one() -> None:
    traced(every_direct_operator)
    found = {operator.name: operator for operator in operators.values() if operator.name in DIRECT}
    assert {*found} == {*DIRECT}
    assert all(operator.direct is not operator.call for operator in found.values())
    assert not any(operator.special or operator.may_carry for operator in found.values())
