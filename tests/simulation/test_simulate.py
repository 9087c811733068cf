"""Simulated CUDA devices: how many there are, and where a tensor is."""

from __future__ import annotations

import re

import pytest
import torch

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


def test_a_number_on_the_host_and_host_indices_are_legal(two: None) -> None:
    x = torch.arange(3.0, device="cuda")
    assert (x * torch.tensor(2.0)).tolist() == [0, 2, 4]
    assert x[torch.tensor([2, 0])].tolist() == [2, 0]
    assert x.add(torch.tensor(1.0)).device.type == "cuda"


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
