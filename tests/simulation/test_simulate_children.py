"""Child processes: a spawned one has its parent's devices, and memory that one sends; a forked one may use neither."""

from __future__ import annotations

import multiprocessing
import sys
from typing import Any

import pytest
import torch
from torch import nn
from torch.multiprocessing.spawn import spawn
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
def test_a_forked_worker_may_not_use_what_its_parent_has_used(
    one: None, made_on: str, given_on: str, words: str
) -> None:
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
def test_a_forked_worker_may_not_run_backward_where_its_parent_has(one: None, *, parent_learns: bool) -> None:
    if parent_learns:
        torch.ones(2, requires_grad=True).sum().backward()
    batches = DataLoader(Gradient(), 1, num_workers=1, multiprocessing_context="fork")
    if parent_learns:
        with pytest.raises(RuntimeError, match="Unable to handle autograd's threading"):
            list(batches)
    else:
        assert [batch.item() for batch in batches] == [0, 2]


def add_one_to_each(sent: multiprocessing.Queue[Any], seen: multiprocessing.Queue[Any]) -> None:
    """Answer each tensor by what it is here, one of our own by itself."""
    while (each := sent.get(timeout=LIMIT)) is not None:
        with torch.no_grad():
            each.add_(1)
        seen.put((str(each.device), type(each).__name__, each.requires_grad, torch.cuda.memory_allocated(each.device)))
        try:
            multiprocessing.reduction.ForkingPickler.dumps(each)
        except RuntimeError as refused:
            seen.put(str(refused))
    seen.put(torch.zeros(3, device="cuda:1"))
    assert sent.get(timeout=LIMIT).query()
    assert sent.get(timeout=LIMIT) == "it has arrived"


def test_a_tensor_in_a_queue_of_two_processes_is_one_memory_as_on_cuda() -> None:
    context = torch.multiprocessing.get_context("spawn")
    with devtrace.simulate("cuda:2"):
        sent, seen = context.Queue(), context.Queue()
        child = context.Process(target=add_one_to_each, args=(sent, seen))
        child.start()
        row = torch.arange(6.0, device="cuda:1").reshape(2, 3)[1]
        for each in (row, row, nn.Parameter(torch.zeros(2, device="cuda")), torch.ones(0, device="cuda:1")):
            before = torch.cuda.memory_allocated()
            sent.put(each)
            names = "cuda:0" if each.requires_grad else "cuda:1", type(each).__name__, each.requires_grad, 0
            assert seen.get(timeout=LIMIT) == names
            assert not each.numel() or "Consider cloning before sending" in seen.get(timeout=LIMIT)
            assert torch.cuda.memory_allocated() == before
        assert row.tolist() == [5, 6, 7]
        sent.put(None)
        sent.put(torch.cuda.Event(interprocess=True))
        theirs = seen.get(timeout=LIMIT)
        assert (theirs.device, theirs.tolist()) == (torch.device("cuda:1"), [0, 0, 0])
        sent.put("it has arrived")
        child.join()
    assert child.exitcode == 0


def write_a_row(rank: int, weights: dict[str, torch.Tensor]) -> None:
    with torch.no_grad():
        weights["weight"][rank] = rank + 1


def test_a_model_is_given_to_processes_that_are_spawned(one: None) -> None:
    model = nn.Linear(2, 2).cuda()
    spawn(write_a_row, (model.state_dict(),), nprocs=1)
    assert model.weight[0].tolist() == [1, 1]
