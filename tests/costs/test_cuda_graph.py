"""A number on the CPU in what `torch.compile` was asked to run as a CUDA graph is named, where it came from outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import devtrace
from devtrace.api.results import Trace
from devtrace.diagnosis.findings import Finding
from traces import new_builder, tensor

GPU = "cuda:0"
GRAPHS: list[dict[str, Any]] = [
    {"mode": "reduce-overhead"},
    {"mode": "max-autotune"},
    {"options": {"triton.cudagraphs": True}},
]
WITHOUT: list[dict[str, Any]] = [{}, {"mode": "max-autotune-no-cudagraphs"}, {"backend": "eager"}]
TEMPERATURE = torch.tensor(0.7)


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.scale = torch.tensor(0.5)

    def forward(self, x: Any) -> Any:
        return self.layer(x) * self.scale


class Timed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: Any, t: Any) -> Any:
        half = torch.tensor(0.5)
        return self.layer(x) * torch.sin(t) * half


def scaled(x: Any, by: Any) -> Any:
    return x * by


def batch() -> torch.Tensor:
    return torch.ones(2, 4, device=GPU)


def found(program: Callable[[], object]) -> list[Finding]:
    with devtrace.record(simulate="cuda:1") as recording:
        program()
    assert not recording.report.notes
    return [finding for finding in recording.report.findings if finding.rule == "cuda-graph"]


def steps(count: int, **how: Any) -> Callable[[], None]:
    def run() -> None:
        fast = torch.compile(Scaled().to(GPU), **how)
        for _ in range(count):
            fast(batch())

    return run


@pytest.mark.parametrize("how", GRAPHS, ids=str)
def test_an_attribute_that_stayed_on_the_cpu_is_named_with_its_line_and_an_edit(how: dict[str, Any]) -> None:
    (finding,) = found(steps(12, **how))
    assert (finding.severity, finding.count, finding.cause) == ("warning", 12, "not-registered")
    assert finding.culprit is not None
    assert finding.culprit.born is not None
    assert finding.culprit.born.text == "self.scale = torch.tensor(0.5)"
    assert [edit.after.strip() for edit in finding.edits] == [
        'self.register_buffer("scale", torch.tensor(0.5), persistent=False)'
    ]
    assert finding.message.endswith("copies it to cuda:0 before that: 12 copies.")


@pytest.mark.parametrize("how", WITHOUT, ids=str)
def test_without_cuda_graphs_such_a_number_costs_nothing(how: dict[str, Any]) -> None:
    assert found(steps(12, **how)) == []


def test_where_graphs_are_not_cut_they_are_skipped() -> None:
    (finding,) = found(steps(2, backend="cudagraphs"))
    assert (finding.severity, finding.count) == ("warning", 2)
    assert finding.message.endswith("CUDA graphs take no tensor on the CPU: torch.compile skips them for this code.")
    (uncut,) = found(steps(2, options={"triton.cudagraphs": True, "graph_partition": False}))
    assert uncut.message == finding.message


def test_a_few_calls_are_a_note() -> None:
    (finding,) = found(steps(3, mode="reduce-overhead"))
    assert finding.severity == "note"


def test_a_module_that_compiles_itself_and_a_variable_of_the_file() -> None:
    def program() -> None:
        model = Scaled().to(GPU)
        model.compile(mode="reduce-overhead")
        soft = torch.compile(lambda x: torch.softmax(x / TEMPERATURE, -1), mode="reduce-overhead")
        for _ in range(12):
            soft(model(batch()))

    assert [(each.culprit and each.culprit.name, each.count) for each in found(program)] == [
        ("self.scale", 12),
        ("TEMPERATURE", 12),
    ]


def test_a_number_that_each_step_hands_in_is_found_through_what_is_computed_of_it() -> None:
    def program() -> None:
        fast = torch.compile(Timed().to(GPU), mode="reduce-overhead")
        for step in range(12):
            t = torch.tensor(step / 12)
            fast(batch(), t)

    (finding,) = found(program)
    assert finding.culprit is not None
    assert finding.culprit.born is not None
    assert (finding.count, finding.culprit.born.text) == (12, "t = torch.tensor(step / 12)")


def test_what_the_compiled_code_makes_itself_is_made_on_the_device() -> None:
    def program() -> None:
        fast = torch.compile(lambda x: scaled(x, torch.tensor(0.5)), mode="reduce-overhead")
        for _ in range(12):
            fast(batch())

    assert found(program) == []


def test_outside_of_the_compiled_code_a_number_is_of_no_graph() -> None:
    def program() -> None:
        model = Scaled().to(GPU)
        fast = torch.compile(nn.Linear(4, 4).to(GPU), mode="reduce-overhead")
        for _ in range(12):
            model(fast(batch()))

    assert found(program) == []


def test_the_edit_makes_the_same_values_and_leaves_nothing_to_copy() -> None:
    class Registered(Scaled):
        def __init__(self) -> None:
            super().__init__()
            del self.scale
            self.register_buffer("scale", torch.tensor(0.5), persistent=False)

    with devtrace.simulate("cuda:1"):
        torch.manual_seed(0)
        before = Scaled().to(GPU)(batch())
        torch.manual_seed(0)
        after = Registered().to(GPU)(batch())
        assert torch.equal(before, after)

    def program() -> None:
        fast = torch.compile(Registered().to(GPU), mode="reduce-overhead")
        for _ in range(12):
            fast(batch())

    assert found(program) == []


def test_the_number_is_the_one_that_torchs_own_graph_has_as_an_input_on_the_cpu() -> None:
    with devtrace.simulate("cuda:1"):
        for model, inputs in ((Scaled(), (batch(),)), (Timed(), (batch(), torch.tensor(0.5)))):
            graphs = torch._dynamo.explain(model.to(GPU))(*inputs).graphs
            nodes = [node for graph in graphs for node in graph.graph.nodes if node.op == "placeholder"]
            on_the_cpu = [node.name for node in nodes if node.meta["example_value"].device.type == "cpu"]
            assert [name.rpartition("_")[2] for name in on_the_cpu] == ["scale" if len(inputs) == 1 else ""]


def test_no_op_in_a_trace_of_real_devices_is_taken_for_a_compiled_one() -> None:
    """On a GPU a compiled region is one call without ops, so a number beside a device's tensor is an eager op's."""
    b = new_builder("train.py")
    cpu, cuda = b.device("cpu"), b.device("cuda:0")
    site = b.append(
        "sites", file="train.py", line=3, column=0, end_line=3, end_column=9, function="step", text="x * scale"
    )
    thread = b.append("threads", name="MainThread", rank=0)
    scale, x = (tensor(b, device, dims) for device, dims in ((cpu, ()), (cuda, (2, 4))))
    for step in range(12):
        b.append("ops", name="aten.mul", start=1000 * step, duration=100, device=cuda, kind="compute", phase="other",
                 site=site, thread=thread, inputs=(x, scale), outputs=())  # fmt: skip
    assert devtrace.diagnose(Trace.of(b.build())).findings == ()
