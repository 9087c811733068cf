"""CUDA graphs on simulated devices: a capture changes nothing, a replay computes anew in the same tensors."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import devtrace

pytestmark = pytest.mark.usefixtures("one")


def test_a_replay_reads_and_writes_the_tensors_of_the_capture() -> None:
    given = torch.ones(4, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        assert torch.cuda.is_current_stream_capturing()
        result = (given * 2).view(2, 2).t()
    assert not torch.cuda.is_current_stream_capturing()
    given.copy_(torch.arange(4))
    graph.replay()
    assert result.tolist() == [[0, 4], [2, 6]]
    assert result.device == given.device


def test_a_capture_leaves_every_tensor_as_it_was() -> None:
    total = torch.zeros(2, 2, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        total[0].add_(1)
        total.mul_(2)
    assert total.tolist() == [[0, 0], [0, 0]]
    graph.replay()
    graph.replay()
    assert total.tolist() == [[6, 6], [0, 0]]


def test_training_in_a_graph_is_training() -> None:
    def trained(captured: bool) -> torch.Tensor:
        torch.manual_seed(0)
        net = nn.Linear(3, 2).to("cuda")
        optimizer = torch.optim.Adam(net.parameters(), lr=0.1, capturable=True)
        batch = torch.ones(4, 3, device="cuda")

        def step() -> None:
            optimizer.zero_grad(set_to_none=True)
            net(batch).square().sum().backward()
            optimizer.step()

        step()
        graph = torch.cuda.CUDAGraph()
        if captured:
            with torch.cuda.graph(graph):
                step()
        for number in range(3):
            batch.fill_(number)
            if captured:
                graph.replay()
            else:
                step()
        return net.weight.detach().cpu()

    assert torch.equal(trained(True), trained(False))


def test_graphed_callables_give_values_and_gradients() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1)).to("cuda")
    x = torch.rand(5, 3, device="cuda")
    plain = net(x)
    plain.sum().backward()
    gradients = [parameter.grad.clone() for parameter in net.parameters() if parameter.grad is not None]
    net.zero_grad()
    graphed: Any = torch.cuda.make_graphed_callables(net, (torch.rand(5, 3, device="cuda"),))
    out = graphed(x)
    out.sum().backward()
    assert torch.equal(out, plain)
    found = [parameter.grad for parameter in net.parameters()]
    assert all(a is not None and torch.equal(a, b) for a, b in zip(found, gradients, strict=True))


def test_what_waits_for_the_device_ends_a_capture() -> None:
    x = torch.ones(2, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="not permitted when stream is capturing"), torch.cuda.graph(graph):
        x.sum().item()
    assert not torch.cuda.is_current_stream_capturing()


def test_a_graph_is_captured_once_and_replayed_only_then() -> None:
    graph = torch.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        graph.replay()
    with torch.cuda.graph(graph, pool=torch.cuda.graph_pool_handle()):
        torch.ones(2, device="cuda")
    with pytest.raises(RuntimeError, match="already owns a captured graph"):
        graph.capture_begin()
    graph.reset()
    with torch.cuda.graph(graph):
        y = torch.ones(2, device="cuda") * 3
    graph.replay()
    assert y.tolist() == [3, 3]


def test_a_recording_sees_what_a_replay_runs() -> None:
    x = torch.ones(2, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x.exp()
    with devtrace.record() as recording:
        graph.replay()
    assert [op.device for op in recording.trace.ops if op.name == "aten.exp"] == ["cuda:0"]
    assert recording.report.findings == ()
