"""Simulated CUDA devices: what a program sees, which values it gets, and that nothing is left behind."""

from __future__ import annotations

import re

import pytest
import torch
from torch import nn

import devtrace
from devtrace.words.errors import SimulateError


@pytest.mark.parametrize("spec", ["cuda:0", "mps", "tpu:9", "cuda:99", "cuda:-1", "", None, True, 0, 17, 2.0])
def test_what_is_no_number_of_devices_gets_one_sentence_about_what_is(spec: object) -> None:
    with pytest.raises(SimulateError, match=re.escape('"cuda:1" to "cuda:16"')) as caught:
        devtrace.simulate(spec)  # type: ignore[arg-type]
    assert caught.value.slug == "simulate-devices"
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("spec", ["cuda:3", "3", 3])
def test_a_number_of_devices_may_be_a_plain_number(spec: str | int) -> None:
    with devtrace.simulate(spec):
        assert torch.cuda.device_count() == 3


def test_two_simulations_do_not_nest(two: None) -> None:
    with pytest.raises(SimulateError, match="simulate-nested"), devtrace.simulate("cuda:1"):
        pass
    assert torch.cuda.device_count() == 2


def test_a_tensor_has_the_device_that_it_was_put_on(two: None) -> None:
    x = torch.zeros(3, device="cuda:1")
    assert x.device == torch.device("cuda:1")
    assert x.is_cuda
    assert not x.is_cpu
    assert x.get_device() == 1
    assert (x[1:] * 2).device == x.device
    assert x.cpu().device == torch.device("cpu")


def test_a_move_to_where_a_tensor_is_gives_the_tensor_itself(two: None) -> None:
    x = torch.zeros(3, device="cuda")
    assert x.to("cuda") is x
    assert x.cuda(0) is x
    assert x.to(torch.float32) is x
    assert x.to("cuda:0", copy=True) is not x


def test_a_gradient_comes_back_to_the_device_of_its_tensor(two: None) -> None:
    x = torch.ones(3, requires_grad=True)
    (x.to("cuda:0") * 2).to("cuda:1").sum().backward()
    assert x.grad is not None
    assert x.grad.device == torch.device("cpu")
    assert x.grad.tolist() == [2, 2, 2]


def test_a_mix_of_devices_raises_in_the_words_of_torch(two: None) -> None:
    with pytest.raises(RuntimeError, match="found at least two devices, cuda:0 and cpu!"):
        torch.ones(3) + torch.ones(3, device="cuda")
    with pytest.raises(RuntimeError, match="got mat1 is on cuda:0, different from other tensors on cpu"):
        nn.Linear(3, 3)(torch.ones(2, 3, device="cuda"))
    with pytest.raises(RuntimeError, match=r"indices should be either on cpu .* indexed tensor \(cpu\)"):
        torch.ones(3)[torch.tensor([0], device="cuda")]
    with pytest.raises(TypeError, match="can't convert cuda:0 device type tensor to numpy"):
        torch.ones(3, device="cuda").numpy()


def test_a_number_on_the_host_and_host_indices_are_legal(two: None) -> None:
    x = torch.arange(3.0, device="cuda")
    assert (x * torch.tensor(2.0)).tolist() == [0, 2, 4]
    assert x[torch.tensor([2, 0])].tolist() == [2, 0]
    assert x.add(torch.tensor(1.0)).device.type == "cuda"


def train(device: str, optimizer: type[torch.optim.Optimizer]) -> list[float]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.2), nn.LayerNorm(16), nn.Linear(16, 3)).to(device)
    update = optimizer(model.parameters(), lr=0.05, foreach=False)  # type: ignore[call-arg]
    losses = []
    for _ in range(4):
        loss = nn.functional.cross_entropy(model(torch.randn(8, 6).to(device)), torch.randint(0, 3, (8,)).to(device))
        update.zero_grad()
        loss.backward()
        update.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW])
def test_training_gives_the_values_of_the_cpu_bit_for_bit(optimizer: type[torch.optim.Optimizer]) -> None:
    plain = train("cpu", optimizer)
    with devtrace.simulate("cuda:1"):
        assert train("cuda:0", optimizer) == plain


def test_a_simulation_shows_what_it_does_or_how_it_begins() -> None:
    simulation = devtrace.simulate("cuda:2")
    waiting = (
        "<simulate: Nothing is simulated yet. "
        'Write `with devtrace.simulate("cuda:2"):` above a block, or call `.start()`.>'
    )
    assert repr(simulation) == waiting
    with simulation:
        assert repr(simulation) == (
            "<simulate: cuda:0 and cuda:1 are simulated until the block ends, or until `.stop()`.>"
        )
    assert repr(simulation) == waiting


def test_after_the_end_every_patched_name_is_the_original() -> None:
    before = {name: vars(torch.cuda)[name] for name in ("is_available", "device_count", "_lazy_init")}
    names = set(vars(torch.Tensor))
    with devtrace.simulate("cuda:2"):
        assert torch.cuda.is_available()
    assert {name: vars(torch.cuda)[name] for name in before} == before
    assert set(vars(torch.Tensor)) == names
    assert not torch.cuda.is_available()
    assert not hasattr(torch.UntypedStorage, "_devtrace_tag")
