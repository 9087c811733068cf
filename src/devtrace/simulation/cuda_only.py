"""Parts of torch.cuda that need a driver: answered where nothing depends on it, else refused with one sentence.

So is a launch of a program's own kernel by Triton, which every build of torch with CUDA brings along.
"""

import sys
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any, Final, NoReturn

import torch
from torch.autograd import profiler
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils import _triton

from devtrace.runtime.import_hook import ImportWatcher
from devtrace.runtime.patches import Call, Patches
from devtrace.runtime.torch_names import replace, returning
from devtrace.simulation.storage_tags import tag_of
from devtrace.words.errors import SimulateError

NCCL_VERSION: Final = (2, 28, 9)
_TRITON: Final = "triton.runtime.driver"


def install(patches: Patches, undo: ExitStack) -> None:
    """Ranges for profilers, handles and attention kernels are answered; graphs, pools and raw memory are refused."""
    _refuse_triton(patches, undo)
    replace("cuda_only", _ANSWERS, patches)
    patches.set(torch.cuda.nvtx, "_nvtx", SimpleNamespace(**dict.fromkeys(_RANGES, returning(0))))
    patches.set(torch.cuda.nccl, "version", returning(NCCL_VERSION))
    patches.set(profiler.emit_nvtx, "__enter__", lambda block: block if block.enabled else None)
    patches.set(profiler.emit_nvtx, "__exit__", returning(False))
    for owner, name, what in _REFUSED:
        patches.set(owner, name, _refusal(what))
    patches.wrap(functional, "scaled_dot_product_attention", _attend_with_a_kernel)


_RANGES: Final = ("rangePushA", "rangePop", "markA", "rangeStartA", "rangeEnd", "deviceRangeStart", "deviceRangeEnd")
"""Marks for a profiler of CUDA's, which watches from outside."""
_ANSWERS: Final = {
    "nothing": returning(None),
    "zero": returning(0),
    "no": returning(False),
    "statistics": returning({}),
    "workspace": returning(32 << 20),
    "state": type("AllocatorState", (), {}),
}
_REFUSED: tuple[tuple[Any, str, str], ...] = (
    (torch.cuda, "MemPool", "simulate-limit.pool"),
    (torch.cuda.memory, "MemPool", "simulate-limit.pool"),
    *((owner, name, "simulate-limit.graph") for owner in (torch.cuda, torch.cuda.graphs) for name in (
        "CUDAGraph", "graph_pool_handle")),
    (torch.cuda, "caching_allocator_alloc", "simulate-limit.memory"),
    (torch.cuda.memory, "caching_allocator_alloc", "simulate-limit.memory"),
    *((torch.cuda, name, "simulate-limit.sensors") for name in (
        "utilization", "temperature", "power_draw", "clock_rate", "memory_usage")),
    *((torch.cuda.tunable, name, "simulate-limit.tuning") for name in (
        "get_results", "get_rotating_buffer_size", "get_validators")),
)  # fmt: skip


def _refusal(slug: str) -> type:
    def refuse(cls: type, *args: Any, **kwargs: Any) -> NoReturn:
        raise SimulateError.of(slug)

    return type("Refused", (), {"__new__": refuse})


def _attend_with_a_kernel(attend: Call, query: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
    """Compute with the CPU's plain kernel where a program allows only those that CUDA has."""
    cuda = torch.backends.cuda
    only_cuda = cuda.mem_efficient_sdp_enabled() or cuda.cudnn_sdp_enabled()
    if cuda.math_sdp_enabled() or not only_cuda or tag_of(query).owner.device is None:
        return attend(query, *args, **kwargs)
    with sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION]):  # what the CPU takes by itself
        return attend(query, *args, **kwargs)


def _refuse_triton(patches: Patches, undo: ExitStack) -> None:
    """Let torch find no Triton, and refuse a launch of a program's own kernel, whenever Triton is loaded."""
    patches.set(_triton, "has_triton_package", returning(False))
    _clear_triton_answers()
    undo.callback(_clear_triton_answers)
    watcher = ImportWatcher(_TRITON)

    def refuse() -> None:
        driver = sys.modules[_TRITON].driver
        undo.callback(vars(driver).update, dict(vars(driver)))
        driver.set_active(_NoDevice())

    undo.callback(watcher.cancel, refuse)
    watcher.call_when_imported(refuse)


def _clear_triton_answers() -> None:
    for answer in vars(_triton).values():
        if hasattr(answer, "cache_clear"):
            answer.cache_clear()


class _NoDevice:
    """Triton's driver, of which a launch asks the device first."""

    def __getattr__(self, name: str) -> NoReturn:
        raise SimulateError.of("simulate-limit.triton")
