"""Costs that fit: elements read singly, constants sent anew, and what the program needs as it is."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from costs import GPU, descend, findings, healthy, warnings, warns


def train(each: Callable[[torch.Tensor], torch.Tensor], steps: int = 12) -> None:
    net = nn.Linear(8, 8).to(GPU)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for batch in [torch.rand(16, 8) for _ in range(steps)]:
        descend(optimizer, each(net(batch.to(GPU))))


# Elements that are read one by one.


def _words() -> list[str]:
    tokens = torch.arange(80).to(GPU)
    return [f"w{token.item()}" for token in tokens]


def _rows() -> dict[int, float]:
    scores, found = torch.rand(60, device=GPU), {}
    for row in range(len(scores)):
        if scores[row] > 0.5:
            found[row] = 1.0
    return found


def _points() -> list[tuple[float, float]]:
    boxes = torch.rand(60, 2, device=GPU)
    found = []
    for box in boxes:
        x, y = float(box[0]), float(box[1])
        found.append((x, y))
    return found


@pytest.mark.parametrize(("program", "name"), [(_words, "tokens"), (_rows, "scores"), (_points, "boxes")])
def test_elements_of_a_device_tensor_that_are_read_one_by_one_are_a_warning(
    program: Callable[[], object], name: str
) -> None:
    found = warnings(program)[0]
    assert found.rule == "host-sync"
    assert f"one element of `{name}` at a time" in found.message
    assert found.help == f"read all of `{name}` at once, above the loop: `{name}.tolist()`"


@warns(rule="host-sync", count=320, help="read all of `hits` at once, above the loop: `hits.tolist()`")
def test_elements_that_are_read_in_evaluation_are_a_warning_too() -> None:
    net = nn.Linear(8, 4).to(GPU).eval()
    right = [0, 0, 0, 0]
    with torch.no_grad():
        for _ in range(20):
            hits = net(torch.rand(16, 8, device=GPU)).argmax(1) == 1
            for at in range(16):
                right[at % 4] += hits[at].item()


def test_a_few_elements_of_each_of_many_tensors_are_none() -> None:
    def program() -> None:
        shown = []
        for _ in range(30):
            best = torch.rand(10, device=GPU).topk(2).indices
            shown.append((best[0].item(), best[1].item()))

    assert not [each for each in warnings(program) if "one element" in each.message]


# Constants that are made on the CPU and sent in each step.


@warns(rule="host-to-device-copy", count=12, edits=[], help="create it on the device: `torch.randn(..., device=...)`")
def test_noise_that_each_step_draws_on_the_cpu_beside_its_batch_is_a_warning_in_words() -> None:
    def noisy(x: torch.Tensor) -> torch.Tensor:
        noise = torch.randn(16, 8)
        return (x + noise.cuda()).square().mean()

    train(noisy)


# What a program needs as it is.


def test_a_model_that_the_program_took_to_the_cpu_may_run_there() -> None:
    def program() -> None:
        net = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 4)).to(GPU)
        train(lambda x: net(x).square().mean())
        net.to("cpu")
        for _ in range(10):
            net(torch.rand(16, 8, device=GPU).cpu())

    found = [each for each in findings(program) if each.rule == "cpu-compute" and each.count >= 10]
    assert {each.severity for each in found} == {"note"}
    assert warnings(program) == []


def test_the_second_read_of_a_tensor_that_did_not_change_is_none() -> None:
    kept: list[float] = []

    def read_twice(x: torch.Tensor) -> torch.Tensor:
        loss = x.square().mean()
        kept.append(loss.item())
        kept.append(loss.item() * 2)
        return loss

    found = warnings(lambda: train(read_twice))
    assert [(each.rule, each.count) for each in found] == [("host-sync", 12)]


# Data that is read before its copy is done.


def _mean_of_a_copy_that_only_began() -> None:
    hidden = torch.rand(64, 8, device=GPU) @ torch.rand(8, 8, device=GPU)
    kept = hidden.to("cpu", non_blocking=True)
    kept.mean()


def _views_of_a_copy_that_only_began() -> None:
    scores = torch.rand(64, 8, device=GPU).softmax(1)
    rows = [scores.to(torch.device("cpu"), torch.float64, non_blocking=True)[0] for _ in range(3)]
    torch.stack(rows)


@pytest.mark.parametrize("program", [_mean_of_a_copy_that_only_began, _views_of_a_copy_that_only_began])
def test_a_copy_that_the_host_works_on_before_anything_waits_is_a_warning(program: Callable[[], None]) -> None:
    (found,) = warnings(program)
    assert found.rule == "device-to-host-copy"
    assert "before its copy is done" in found.message
    assert found.help.endswith("or call `torch.cuda.synchronize()` before the values are read")


@healthy
def test_a_copy_that_something_waited_for_may_be_worked_on() -> None:
    x = torch.rand(64, 8, device=GPU)
    waited, began, sent = (x.to("cpu", non_blocking=True) for _ in range(3))
    torch.cuda.synchronize()
    waited.mean()
    later = (x * 2).to("cpu", non_blocking=True)
    (x * 3).to("cpu")
    (began + later).mean()
    sent.to(GPU, non_blocking=True)
