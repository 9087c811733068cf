"""`torch.cuda`, `torch.accelerator` and torch.device in a simulation: what programs ask beside their tensors."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

import devtrace

pytestmark = pytest.mark.usefixtures("two")


def test_the_machine_has_as_many_devices_as_were_asked_for() -> None:
    assert torch.cuda.is_available()
    assert torch.cuda.device_count() == 2
    assert torch.accelerator.is_available()
    assert torch.accelerator.device_count() == 2
    assert torch.accelerator.current_accelerator() == torch.device("cuda")
    assert torch.backends.cuda.is_built()
    assert torch.version.cuda


def test_a_device_without_an_index_is_the_current_one_of_the_thread() -> None:
    torch.cuda.set_device(1)
    assert torch.zeros(1, device="cuda").device.index == 1
    assert torch.zeros(1).cuda().device.index == 1
    torch.cuda.set_device("cuda:0")
    with torch.cuda.device(1):
        assert torch.cuda.current_device() == 1
        assert torch.zeros(1).to("cuda").device.index == 1
    with torch.accelerator.device_index(1):
        assert torch.accelerator.current_device_index() == 1
    assert torch.cuda.current_device() == 0


def test_a_number_is_a_cuda_device() -> None:
    assert torch.device(1) == torch.device("cuda:1")
    assert torch.zeros(2, device=1).device.index == 1
    assert torch.zeros(2).to(1).device.index == 1
    assert nn.Linear(2, 2).to(1).weight.device.index == 1
    assert nn.Linear(2, 2, device=1).weight.device.index == 1


def test_devices_are_instances_of_torch_device_and_survive_pickle_and_copy() -> None:
    device = torch.zeros(1, device="cuda:1").device
    assert isinstance(device, torch.device)
    assert type(device) == torch.device  # noqa: E721 (what some libraries ask)
    assert pickle.loads(pickle.dumps(device)) == copy.deepcopy(device) == device


@pytest.mark.parametrize("ask", [lambda: torch.zeros(1).cuda(7), lambda: torch.zeros(1, device=7)])
def test_a_device_that_is_not_there_is_an_invalid_ordinal(ask: Callable[[], object]) -> None:
    with pytest.raises(torch.AcceleratorError, match="invalid device ordinal"):
        ask()


def test_the_default_device_and_with_torch_device_reach_every_factory() -> None:
    with torch.device("cuda:1"):
        made = [torch.zeros(2), torch.tensor([1.0]), torch.as_tensor([1]), torch.randn(2), nn.Linear(2, 2).weight]
    assert {str(tensor.device) for tensor in made} == {"cuda:1"}
    torch.set_default_device("cuda")
    try:
        assert torch.get_default_device() == torch.device("cuda:0")
        assert torch.arange(3).is_cuda
    finally:
        torch.set_default_device(None)
    assert not torch.arange(3).is_cuda


def test_a_device_has_a_name_a_capability_and_memory() -> None:
    properties = torch.cuda.get_device_properties(1)
    assert torch.cuda.get_device_name(1) == properties.name
    assert torch.cuda.get_device_capability() == (properties.major, properties.minor)
    free, total = torch.cuda.mem_get_info()
    assert 0 < free <= total == properties.total_memory
    assert torch.cuda.is_bf16_supported()
    assert torch.cuda.can_device_access_peer(0, 1)
    with pytest.raises(AssertionError, match="Invalid device id"):
        torch.cuda.get_device_properties(5)


def test_memory_is_what_lives_on_the_device() -> None:
    before = torch.cuda.memory_allocated()
    x = torch.zeros(1024, device="cuda")
    assert torch.cuda.memory_allocated() - before == 4096
    views = [x[2:], x.view(32, 32), x.detach(), nn.Parameter(x)]
    assert torch.cuda.memory_allocated() - before == 4096
    y = x + 1
    assert torch.cuda.memory_allocated() - before == 8192
    assert torch.cuda.memory_allocated(1) == 0
    del x, y, views
    assert torch.cuda.memory_allocated() == before
    assert torch.cuda.max_memory_allocated() >= before + 8192
    assert torch.cuda.max_memory_reserved() >= torch.cuda.max_memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    assert torch.cuda.max_memory_allocated() == before
    assert "Allocated memory" in torch.cuda.memory_summary()


def test_streams_and_events_keep_their_order_and_time() -> None:
    side = torch.cuda.Stream()
    begun, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    assert torch.cuda.current_stream() == torch.cuda.default_stream()
    with torch.cuda.stream(side):
        assert torch.cuda.current_stream() == side
        begun.record()
        x = torch.ones(3, device="cuda") * 2
        ended.record(side)
    assert torch.cuda.current_stream() == torch.cuda.default_stream() != side
    torch.cuda.current_stream().wait_stream(side)
    x.record_stream(torch.cuda.current_stream())
    torch.cuda.current_stream().wait_event(ended)
    ended.synchronize()
    assert begun.elapsed_time(ended) >= 0
    assert side.query()
    assert ended.query()
    with torch.cuda.stream(torch.cuda.Stream(device=1)):
        assert torch.cuda.current_device() == 1
    with torch.Stream(device="cuda:1") as other:
        assert torch.accelerator.current_stream() == other
    assert torch.cuda.current_device() == 0


def test_an_event_without_timing_has_no_time() -> None:
    one, other = torch.cuda.Event(), torch.cuda.Event()
    one.record()
    other.record()
    with pytest.raises(ValueError, match="enable_timing=True"):
        one.elapsed_time(other)


def test_waiting_and_clearing_do_nothing_and_do_not_fail() -> None:
    torch.cuda.init()
    torch.cuda.synchronize("cuda:1")
    torch.cuda.empty_cache()
    torch.cuda.ipc_collect()
    torch.accelerator.synchronize()
    torch.accelerator.empty_cache()
    assert not torch.cuda.is_current_stream_capturing()


def test_a_generator_draws_on_its_device_only() -> None:
    generator = torch.Generator(device="cuda").manual_seed(3)
    assert generator.device == torch.device("cuda:0")
    assert isinstance(generator, torch.Generator)
    assert isinstance(torch.Generator(), torch.Generator)
    first = torch.rand(3, device="cuda", generator=generator)
    assert torch.equal(first, torch.rand(3, device="cuda", generator=generator.manual_seed(3)))
    copied = pickle.loads(pickle.dumps(generator))
    assert torch.equal(
        torch.randn(2, device="cuda", generator=copied), torch.randn(2, device="cuda", generator=generator)
    )


def test_random_numbers_of_a_device_repeat_from_a_seed_and_from_a_state() -> None:
    torch.cuda.manual_seed(5)
    first = torch.rand(3, device="cuda")
    torch.cuda.manual_seed(5)
    assert torch.equal(first, torch.rand(3, device="cuda"))
    state = torch.cuda.get_rng_state()
    first = torch.rand(3, device="cuda")
    torch.cuda.set_rng_state(state)
    assert torch.equal(first, torch.rand(3, device="cuda"))


def test_a_seed_of_the_device_leaves_the_stream_of_the_host() -> None:
    torch.manual_seed(1)
    plain = torch.rand(4)
    torch.manual_seed(1)
    torch.cuda.manual_seed(99)
    torch.rand(7, device="cuda")
    assert torch.equal(torch.rand(4), plain)


def test_after_one_seed_for_all_host_and_device_draw_from_one_stream_as_on_the_cpu() -> None:
    torch.manual_seed(1)
    plain = torch.rand(6)
    torch.manual_seed(1)
    torch.cuda.manual_seed_all(1)
    drawn = [torch.rand(2), torch.rand(2, device="cuda").cpu(), torch.rand(2)]
    assert torch.equal(torch.cat(drawn), plain)


def test_a_forked_stream_leaves_the_stream_where_it_was() -> None:
    torch.manual_seed(1)
    plain = torch.rand(2, device="cuda")
    torch.manual_seed(1)
    with torch.random.fork_rng(devices=[0]):
        torch.rand(5, device="cuda")
    assert torch.equal(torch.rand(2, device="cuda"), plain)
    assert torch.equal(torch.rand(2), torch.rand(2)) is False


def test_a_negative_index_and_a_host_tensor_change_no_device() -> None:
    torch.cuda.set_device(1)
    with torch.cuda.device(-1):
        assert torch.cuda.current_device() == 1
    with torch.cuda.device_of(torch.ones(1)):
        assert torch.cuda.current_device() == 1
    with torch.cuda.device_of(torch.ones(1, device="cuda:0")):
        assert torch.cuda.current_device() == 0
    torch.cuda.set_device(0)


def test_what_needs_no_driver_is_answered() -> None:
    properties: Any = torch.cuda.get_device_properties(0)
    assert properties.max_threads_per_block == 1024
    assert properties.shared_memory_per_block_optin > properties.shared_memory_per_block
    stream: Any = torch.cuda.Stream
    assert stream.priority_range()[0] == 0
    assert torch.cuda.current_blas_handle() == 0
    assert torch.cuda.host_memory_stats() == {}
    assert torch.cuda.tunable.is_enabled() is False
    assert torch.backends.cuda.cufft_plan_cache.size == 0
    torch.cuda.memory._record_memory_history(enabled=None)
    torch.cuda._sleep(10)


def test_ranges_for_a_profiler_change_nothing() -> None:
    with torch.cuda.nvtx.range("step"):
        torch.cuda.nvtx.range_push("inner")
        torch.cuda.nvtx.range_pop()
        torch.cuda.nvtx.mark("here")
    torch.cuda.nvtx.range_end(torch.cuda.nvtx.range_start("other"))


def test_a_block_that_emits_ranges_runs_as_without() -> None:
    with torch.autograd.profiler.emit_nvtx():
        assert torch.ones(2, device="cuda").sum() == 2
    with torch.autograd.profiler.emit_nvtx(enabled=False) as nothing:
        assert nothing is None


@pytest.mark.parametrize(
    "ask",
    [
        lambda: torch.cuda.MemPool(),
        lambda: torch.cuda.graph(torch.cuda.CUDAGraph()),
        lambda: torch.cuda.make_graphed_callables(torch.nn.Linear(2, 2), (torch.ones(2),)),
        lambda: torch.cuda.caching_allocator_alloc(16),
        lambda: torch.cuda.utilization(),
    ],
)
def test_what_needs_a_driver_is_refused_with_one_sentence(ask: Callable[[], object]) -> None:
    with pytest.raises(devtrace.SimulateError, match=r"simulate.*: got a call for .*no driver") as error:
        ask()
    assert error.value.slug == "simulate-limit"


@pytest.mark.parametrize("backend", [SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION, SDPBackend.MATH])
def test_attention_runs_with_the_kernels_that_cuda_has(backend: SDPBackend) -> None:
    q = torch.rand(1, 2, 6, 8, device="cuda")
    plain = nn.functional.scaled_dot_product_attention(q, q, q)
    with sdpa_kernel(backend):
        assert torch.allclose(nn.functional.scaled_dot_product_attention(q, q, q), plain, atol=1e-5)
    with sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION), pytest.raises(RuntimeError, match="No viable backend"):
        nn.functional.scaled_dot_product_attention(q.cpu(), q.cpu(), q.cpu())
