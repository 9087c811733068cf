"""One memory for all devices: the reference of a proof runs although the bug is there, and computes what was meant."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

import devtrace

GPU, OTHER = "cuda:0", "cuda:1"


def mixes() -> dict[str, Callable[[], Any]]:
    """Return programs that CUDA refuses, each with a value to compare with the CPU's."""
    return {
        "add": lambda: torch.ones(3, device=GPU) + torch.arange(3.0),
        "in place": lambda: torch.ones(3).add_(torch.arange(3.0, device=GPU)),
        "two devices": lambda: torch.ones(3, device=GPU) @ torch.ones(3, device=OTHER),
        "linear": lambda: nn.functional.linear(torch.ones(2, 3, device=GPU), torch.ones(4, 3)),
        "convolution": lambda: nn.functional.conv1d(torch.ones(1, 1, 5), torch.ones(1, 1, 3, device=GPU)),
        "embedding": lambda: nn.functional.embedding(torch.tensor([0, 1]), torch.eye(3, device=GPU)),
        "index": lambda: torch.arange(3.0)[torch.tensor([0, 2], device=GPU)],
        "masked_fill": lambda: torch.ones(2, device=GPU).masked_fill(torch.tensor([True, False]), 0.0),
        "where": lambda: torch.where(torch.tensor([True, False], device=GPU), torch.ones(2), torch.zeros(2)),
        "cat": lambda: torch.cat([torch.ones(2), torch.zeros(2, device=GPU)]),
        "attention": lambda: nn.functional.scaled_dot_product_attention(
            torch.ones(1, 1, 2, 2, device=GPU), torch.ones(1, 1, 2, 2), torch.ones(1, 1, 2, 2, device=GPU)
        ),
        "numpy": lambda: torch.tensor(torch.ones(3, device=GPU).numpy()),
        "generator": lambda: torch.randn(2, device=GPU, generator=torch.Generator().manual_seed(3)),
        "packed": lambda: (
            pack_padded_sequence(
                torch.ones(2, 3, 1, device=GPU), torch.tensor([3, 2], device=GPU), batch_first=True
            ).data
        ),
        "foreach": lambda: torch._foreach_add([torch.ones(2), torch.ones(1)], [torch.ones(2, device=GPU)] * 2)[0],
        "no such device": lambda: torch.ones(2, device="cuda:7"),
    }


@pytest.mark.parametrize("name", mixes())
def test_what_cuda_refuses_is_computed(name: str) -> None:
    with devtrace.simulate("cuda:2"), pytest.raises((RuntimeError, TypeError)):
        mixes()[name]()
    with devtrace.simulate("cuda:2", one_device=True):
        value = mixes()[name]().cpu()
    assert value.isfinite().all()


def test_a_tensor_keeps_the_device_that_the_program_gave_it() -> None:
    with devtrace.simulate("cuda:2", one_device=True):
        host, there = torch.ones(2), torch.ones(2, device=OTHER)
        host += there
        assert (str(host.device), str(there.device), str((host * there).device)) == ("cpu", OTHER, OTHER)
        assert there.to(GPU).data_ptr() != there.data_ptr()


def trained(device: str) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Return what three steps make of a model whose head and average were left behind."""
    torch.manual_seed(0)
    model, head = nn.Linear(4, 4), nn.Linear(4, 2)
    average = copy.deepcopy(model)
    model.to(device)
    optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()])
    for _ in range(3):
        optimizer.zero_grad()
        noise = torch.randn(5, 4, device=device)
        nn.functional.cross_entropy(head(model(noise)), torch.randint(0, 2, (5,))).backward()
        optimizer.step()
        with torch.no_grad():
            for mean, parameter in zip(average.parameters(), model.parameters(), strict=True):
                mean.mul_(0.9).add_(parameter, alpha=0.1)
    parameters = [*model.parameters(), *head.parameters(), *average.parameters()]
    return [each.detach().cpu() for each in parameters], [
        each.cpu() for state in optimizer.state.values() for each in state.values()
    ]


def test_a_program_with_a_device_bug_ends_with_the_values_of_the_cpu() -> None:
    plain = trained("cpu")
    with devtrace.simulate("cuda:1"), pytest.raises(RuntimeError, match="same device"):
        trained(GPU)
    with devtrace.simulate("cuda:1", one_device=True):
        ran = trained(GPU)
    for one, other in zip((*plain[0], *plain[1]), (*ran[0], *ran[1]), strict=True):
        assert torch.equal(one, other)


def test_after_it_each_device_is_its_own_memory_again() -> None:
    with devtrace.simulate("cuda:1", one_device=True):
        torch.ones(1, device=GPU) @ torch.ones(1)
    with devtrace.simulate("cuda:1"), pytest.raises(RuntimeError):
        torch.ones(1, device=GPU) @ torch.ones(1)
