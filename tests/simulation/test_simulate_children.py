"""Child processes: a spawned one has its parent's devices, a forked one may not use what its parent has used."""

from __future__ import annotations

import multiprocessing
import sys
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

import devtrace
from devtrace.diagnosis.evidence.torchs_sentences import ABOUT_DEVICES
from warm import LIMIT


def count_and_sum(results: multiprocessing.Queue[tuple[int, str]]) -> None:
    results.put((torch.cuda.device_count(), str((torch.ones(2, device="cuda:1") * 2).device)))


class Numbers(Dataset[torch.Tensor]):
    def __init__(self, made_on: str, given_on: str) -> None:
        self.numbers, self.given_on = torch.arange(4.0, device=made_on), given_on

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.numbers[index].to(self.given_on)


@pytest.mark.parametrize("start", ["spawn", "forkserver"])
def test_a_child_that_is_spawned_simulates_what_its_parent_does(start: str) -> None:
    context: Any = multiprocessing.get_context(start)
    with devtrace.simulate("cuda:2"):
        results: multiprocessing.Queue[tuple[int, str]] = context.Queue()
        child = context.Process(target=count_and_sum, args=(results,))
        child.start()
        assert results.get(timeout=LIMIT) == (2, "cuda:1")
        child.join()
    assert child.exitcode == 0


def test_after_the_simulation_a_child_has_no_devices() -> None:
    with devtrace.simulate("cuda:2"):
        pass
    assert "devtrace" not in multiprocessing.spawn.get_preparation_data("a child")


@pytest.mark.skipif(sys.platform == "win32", reason="no fork there")
@pytest.mark.parametrize(
    ("made_on", "given_on", "words"),
    [("cpu", "cuda", "Cannot re-initialize CUDA in forked subprocess"), ("cuda", "cpu", "initialization error")],
)
def test_a_forked_worker_may_not_use_what_its_parent_has_used(made_on: str, given_on: str, words: str) -> None:
    with devtrace.simulate("cuda:1"):
        torch.ones(2, device="cuda")
        with pytest.raises(RuntimeError, match=words) as caught:
            list(DataLoader(Numbers(made_on, given_on), 2, num_workers=1, multiprocessing_context="fork"))
        assert ABOUT_DEVICES.search(str(caught.value))


@pytest.mark.skipif(sys.platform == "win32", reason="no fork there")
def test_a_forked_worker_that_leaves_devices_alone_works() -> None:
    with devtrace.simulate("cuda:1"):
        torch.ones(2, device="cuda")
        batches = list(DataLoader(Numbers("cpu", "cpu"), 2, num_workers=1, multiprocessing_context="fork"))
    assert [batch.tolist() for batch in batches] == [[0, 1], [2, 3]]


class Gradient(Dataset[torch.Tensor]):
    """Each entry is the gradient of a square."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> torch.Tensor:
        number = torch.tensor(float(index), requires_grad=True)
        return torch.autograd.grad(number**2, number)[0]


@pytest.mark.skipif(sys.platform == "win32", reason="no fork there")
@pytest.mark.parametrize("parent_learns", [False, True])
def test_a_forked_worker_may_not_run_backward_where_its_parent_has(*, parent_learns: bool) -> None:
    with devtrace.simulate("cuda:1"):
        if parent_learns:
            torch.ones(2, requires_grad=True).sum().backward()
        batches = DataLoader(Gradient(), 1, num_workers=1, multiprocessing_context="fork")
        if parent_learns:
            with pytest.raises(RuntimeError, match="Unable to handle autograd's threading"):
                list(batches)
        else:
            assert [batch.item() for batch in batches] == [0, 2]
