"""Memory of simulated devices: counted as CUDA's caching allocator counts, and refused where a limit ends."""

from __future__ import annotations

import itertools
import random
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest
import torch
from torch import nn
from torch.distributed._tools import mem_tracker

import devtrace
from devtrace.runtime.device_spec import limit_of, spec_of
from devtrace.simulation.allocation import allocator
from devtrace.simulation.allocation.allocator import Block, CachingAllocator
from devtrace.words.errors import SimulateError
from modes import Ops

MIB = 1 << 20


def floats(mib: float) -> torch.Tensor:
    return torch.zeros(int(mib * MIB) // 4, device="cuda")


@pytest.mark.parametrize(
    ("spec", "limit", "written"),
    [
        ("cuda:1,24GB", 24 << 30, "cuda:1,24GB"),
        ("cuda:2, 7.5 gib", 15 << 29, "cuda:2,7.5GB"),
        ("cuda:1,800MB", 800 << 20, "cuda:1,800MB"),
        ("2,100m", 100 << 20, "cuda:2,100MB"),
        ("cuda:2", None, "cuda:2"),
        (2, None, "cuda:2"),
    ],
)
def test_a_limit_follows_the_number_of_devices(spec: str | int, limit: int | None, written: str) -> None:
    assert limit_of(spec) == limit
    assert spec_of(spec) == written
    assert limit_of(written) == limit


@pytest.mark.parametrize("spec", ["cuda:1,", "cuda:1,24", "cuda:1,1KB", "cuda:1,-2GB", "cuda:1,2GB,3GB"])
def test_another_limit_is_refused_in_one_sentence(spec: str) -> None:
    with pytest.raises(SimulateError, match="simulate-memory: got"):
        spec_of(spec)


def test_each_tensor_takes_whole_blocks_of_512_bytes(one: None) -> None:
    kept = [torch.zeros((), device="cuda") for _ in range(10)]
    assert torch.cuda.memory_allocated() == 10 * 512
    kept.append(torch.zeros(0, device="cuda"))
    assert torch.cuda.memory_allocated() == 10 * 512


def test_a_storage_that_gets_another_size_takes_as_much(one: None) -> None:
    x = torch.zeros(1024, device="cuda")
    x.untyped_storage().resize_(0)
    assert torch.cuda.memory_allocated() == 0
    x.untyped_storage().resize_(8192)
    assert torch.cuda.memory_allocated() == 8192
    x.resize_(4096)
    assert torch.cuda.memory_allocated() == 16384
    out = torch.empty(0, device="cuda")
    torch.add(x, x, out=out)
    assert torch.cuda.memory_allocated() == 2 * 16384


def test_reserved_falls_when_the_cache_is_emptied(one: None) -> None:
    x, y = floats(8), floats(3)
    del x
    assert torch.cuda.memory_reserved() >= 11 * MIB
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() == 4 * MIB
    assert torch.cuda.max_memory_reserved() >= 11 * MIB
    assert torch.cuda.max_memory_allocated() == 11 * MIB
    torch.cuda.reset_peak_memory_stats()
    assert torch.cuda.max_memory_allocated() == y.nbytes


def test_free_memory_is_never_below_nothing(one: None) -> None:
    x = torch.empty(20 << 28, device="cuda")  # 20 GiB that nobody touches
    free, total = torch.cuda.mem_get_info()
    assert (free, total) == (0, 16 << 30)
    del x


def test_a_limit_is_what_the_device_has() -> None:
    with devtrace.simulate("cuda:2,64MB"):
        assert torch.cuda.get_device_properties(1).total_memory == 64 * MIB
        assert torch.cuda.mem_get_info(1) == (64 * MIB, 64 * MIB)
        x = floats(1.5)
        free, total = torch.cuda.mem_get_info(0)
        assert free + torch.cuda.memory_reserved(0) == total
        assert torch.cuda.memory_reserved(0) == 20 * MIB  # the segment of a large tensor
        assert torch.cuda.memory_allocated(0) == x.nbytes
        assert torch.cuda.mem_get_info(1)[0] == total


def test_what_does_not_fit_is_refused_in_cudas_words_and_counts_nothing() -> None:
    with devtrace.simulate("cuda:1,64MB"):
        x = floats(30)
        with pytest.raises(torch.OutOfMemoryError) as caught:
            floats(40)
        text = str(caught.value)
        assert text.startswith(
            "CUDA out of memory. Tried to allocate 40.00 MiB. GPU 0 has a total capacity of 64.00 MiB of which "
            "34.00 MiB is free. Including non-PyTorch memory, this process has 30.00 MiB memory in use. Of the "
            "allocated memory 30.00 MiB is allocated by PyTorch, and 0 bytes is reserved by PyTorch but unallocated. "
        )
        assert isinstance(caught.value, torch.cuda.OutOfMemoryError)
        assert torch.cuda.memory_allocated() == torch.cuda.max_memory_allocated() == x.nbytes
        assert torch.cuda.memory_stats()["num_ooms"] == 1
        del x, caught
        assert floats(40).nbytes == 40 * MIB


def test_the_statistics_count_what_was_asked_of_the_driver() -> None:
    with devtrace.simulate("cuda:1,64MB"):
        x, y = floats(30), floats(1)
        stats = torch.cuda.memory_stats()
        assert (stats["num_device_alloc"], stats["num_device_free"], stats["max_split_size"]) == (2, 0, -1)
        del x
        torch.cuda.empty_cache()
        stats = torch.cuda.memory_stats()
        assert (stats["num_device_alloc"], stats["num_device_free"], stats["segment.all.current"]) == (2, 1, 1)
        assert y.is_cuda


def test_a_program_that_catches_the_error_goes_on_with_a_smaller_batch() -> None:
    with devtrace.simulate("cuda:1,64MB"):
        layer, batch = torch.nn.Linear(1024, 1024, device="cuda"), 32768
        while True:
            try:
                out = layer(torch.randn(batch, 1024, device="cuda"))
                break
            except torch.OutOfMemoryError:
                batch //= 2
        assert out.shape == (4096, 1024)


def test_an_error_in_the_backward_pass_keeps_its_type() -> None:
    with devtrace.simulate("cuda:1,64MB"):
        x = floats(18).requires_grad_()
        y = x.exp().sum()
        with pytest.raises(torch.OutOfMemoryError):
            (y * floats(18)).sum().backward()


def test_a_fraction_of_the_memory_may_be_all_that_a_process_gets(one: None) -> None:
    x = floats(30)
    torch.cuda.set_per_process_memory_fraction(64 / 16384)
    assert torch.cuda.get_per_process_memory_fraction() == 64 / 16384
    assert torch.cuda.memory_allocated() == x.nbytes
    with pytest.raises(torch.OutOfMemoryError, match=r"64\.00 MiB allowed; "):
        floats(40)
    torch.cuda.set_per_process_memory_fraction(1.0)
    assert floats(40).nbytes == 40 * MIB


def test_a_small_rest_of_a_large_block_is_not_split_off() -> None:
    memory = CachingAllocator(100 * MIB)
    assert memory.take(int(11.5 * MIB)) is not None
    assert memory.allocated == memory.reserved == 12 * MIB


def test_cached_segments_are_given_back_before_it_fails() -> None:
    memory = CachingAllocator(40 * MIB)
    blocks = [memory.take(15 * MIB), memory.take(15 * MIB)]
    memory.give(blocks[0] or 0)
    assert memory.take(24 * MIB) is not None
    assert (memory.reserved, memory.retries, memory.failures) == (40 * MIB, 1, 0)
    assert memory.take(15 * MIB) is None
    assert memory.failures == 1


@pytest.mark.parametrize("is_interrupted", [False, True])
def test_blocks_never_overlap_and_no_byte_is_lost(is_interrupted: bool) -> None:
    """At any line of a call a signal's handler or a finalizer may ask for memory too, or give some back."""
    draw, memory = random.Random(0), CachingAllocator(300 * MIB)
    taken: list[Block] = []
    handled: list[Block] = []

    def interrupt(frame: FrameType, event: str, _: object) -> Any:
        if event == "line" and draw.random() < 0.02:
            if handled and draw.random() < 0.5:
                memory.give(handled.pop(draw.randrange(len(handled))))
            elif block := memory.take(int(2 ** draw.uniform(3, 15))):
                assert isinstance(block, Block)
                handled.append(block)
        return interrupt if frame.f_code.co_filename == allocator.__file__ else None

    before = sys.gettrace()
    for _ in range(4000):
        sys.settrace(interrupt if is_interrupted else before)
        try:
            if taken and draw.random() < 0.5:
                memory.give(taken.pop(draw.randrange(len(taken))))
            elif block := memory.take(int(2 ** draw.uniform(3, 24))):
                assert isinstance(block, Block)
                taken.append(block)
            if draw.random() < 0.01:
                memory.release()
        finally:
            sys.settrace(before)
    assert bool(handled) == is_interrupted
    taken += handled
    memory.give(memory.take(1) or 0)  # what was given back in the midst of the last call comes with the next
    spans = []
    for _, blocks in memory.segments():
        assert all(not (one.free and other.free) for one, other in itertools.pairwise(blocks))
        spans += [(block.address, block.size, block.free) for block in blocks]
    assert sum(size for _, size, _ in spans) == memory.reserved <= 310 * MIB
    assert sum(size for _, size, free in spans if not free) == memory.allocated == sum(each.size for each in taken)
    ends = sorted((start, start + size) for start, size, _ in spans)
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(ends))
    for block in taken:
        memory.give(block)
    memory.release()
    assert memory.reserved == memory.allocated == 0


BLOCK = 512


class Last(nn.Module):
    """Gives the last output of a sequence."""

    def forward(self, outputs: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        return outputs[0][:, -1]


def convolutions() -> nn.Module:
    body = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.ReLU()
    return nn.Sequential(*body, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10))


def transformer() -> nn.Module:
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, 0.0, batch_first=True), 2)
    return nn.Sequential(nn.Embedding(50, 32), encoder, nn.Flatten(), nn.Linear(12 * 32, 10))


def recurrent() -> nn.Module:
    return nn.Sequential(nn.Embedding(50, 32), nn.LSTM(32, 32, batch_first=True), Last(), nn.Linear(32, 10))


Make = Callable[[], nn.Module]
MODELS: dict[Make, Callable[[], torch.Tensor]] = {
    convolutions: lambda: torch.randn(4, 3, 16, 16),
    transformer: lambda: torch.randint(0, 50, (4, 12)),
    recurrent: lambda: torch.randint(0, 50, (4, 12)),
}


def training(kind: Make, device: str, begin: Callable[[], None]) -> Iterator[tuple[Any, ...]]:
    torch.manual_seed(0)
    model = kind().to(device)
    optimizer = torch.optim.Adam(model.parameters(), foreach=False)
    x, y = MODELS[kind]().to(device), torch.zeros(4, dtype=torch.long, device=device)
    yield model, optimizer, x, y
    for _ in range(2):
        for _ in range(2):
            begin()
            loss = nn.functional.cross_entropy(model(x), y) / 2
            loss.backward()
            del loss
        optimizer.step()
        optimizer.zero_grad()


def on_the_host(kind: Make) -> list[tuple[str, int]]:
    tracker = mem_tracker.MemTracker()
    snapshot = tracker.get_tracker_snapshot
    ops = Ops(after=lambda func, _: (str(func), sum(each.get("Total", 0) for each in snapshot("current").values())))
    steps = training(kind, "cpu", tracker.reset_mod_stats)
    tracker.track_external(*next(steps))
    with tracker, ops:
        list(steps)
    return ops.seen


def on_a_device(kind: Make) -> list[tuple[str, int]]:
    ops = Ops(after=lambda func, _: (str(func), torch.cuda.memory_allocated()))
    with devtrace.simulate("cuda:1"):
        steps = training(kind, "cuda:0", lambda: None)
        next(steps)
        with ops:
            list(steps)
    return ops.seen


@pytest.mark.parametrize("kind", MODELS)
def test_totals_are_those_of_mem_tracker_after_each_op(kind: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = mem_tracker._WeakRefInfo._calculate_mem_consumed
    monkeypatch.setattr(
        mem_tracker._WeakRefInfo, "_calculate_mem_consumed", lambda info: -(-plain(info) // BLOCK) * BLOCK
    )
    host, device = on_the_host(kind), on_a_device(kind)
    counters = BLOCK * len(list(kind().parameters()))
    assert [name for name, _ in device] == [name for name, _ in host]
    more = [mine - theirs for (_, theirs), (_, mine) in zip(host, device, strict=True)]
    assert more == sorted(more, reverse=True)
    assert (more[0], more[-1]) == (0, -counters)
