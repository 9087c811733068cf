"""CUDA graphs: what runs while one is captured is kept as a list of operators, and runs again with each replay.

As on CUDA, capturing computes nothing that stays: tensors from before are as they were when it ends. A replay reads the
same tensors and writes its results into the tensors that the capture made.
"""

from __future__ import annotations

import itertools
import warnings
from typing import Any, Final

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from devtrace.runtime.mode_stack import push_under, take_out
from devtrace.runtime.patches import Depth, Patches
from devtrace.runtime.torch_names import returning
from devtrace.simulation import generators
from devtrace.simulation.storage_tags import tensors_in, written_by
from devtrace.simulation.tensors import device

_Call = tuple[Any, tuple[Any, ...], dict[str, Any], Any]
_pools = itertools.count(1)
_capturing = Depth()
_WAITS: Final = ("aten::_local_scalar_dense", "aten::nonzero", "aten::item")
"""Operators for which the CPU waits, which no capture allows."""
_EMPTY: Final = (
    "The CUDA Graph is empty. This usually means that the graph was attempted to be captured on wrong device or stream."
)


def install(patches: Patches) -> None:
    """Put the part of a graph that a CUDA build has in C++ below torch's own Python."""
    made = type("CUDAGraph", (CapturedGraph,), {"__module__": "torch.cuda"})
    for owner in (torch.cuda, torch.cuda.graphs):
        patches.set(owner, "CUDAGraph", made)
        patches.set(owner, "graph_pool_handle", _new_pool)
    patches.set(torch.cuda.graph, "default_capture_stream", None)  # torch keeps the first of the process
    for owner in (torch.cuda.graphs, torch._C):
        patches.set(owner, "_cuda_isCurrentStreamCapturing", is_capturing)


def is_capturing() -> bool:
    """Return whether this thread captures a graph."""
    return _capturing.now > 0


def _new_pool() -> tuple[int, int]:
    return 0, next(_pools)


class CapturedGraph:
    """`torch.cuda.CUDAGraph`."""

    def __init__(self, keep_graph: bool = False) -> None:
        self._calls: list[_Call] = []
        self._pool: Any = None
        self._mode: _Capture | None = None
        self._is_ready = False

    def capture_begin(self, pool: Any = None, capture_error_mode: str = "global", **options: Any) -> None:
        if is_capturing() or self._is_ready:
            raise RuntimeError(
                "This CUDAGraph instance already owns a captured graph. To capture a new graph, create a new instance."
            )
        self._pool = pool or _new_pool()
        self._mode = _Capture(self._calls)
        _capturing.now = 1
        push_under(self._mode, 0)

    def capture_end(self) -> None:
        mode, self._mode = self._mode, None
        if mode is None:
            raise RuntimeError("capture_end() called before capture_begin().")
        _capturing.now = 0
        mode.end()
        self._is_ready = True
        if not self._calls:
            warnings.warn(_EMPTY, stacklevel=3)

    def replay(self) -> None:
        self._need_capture("replay")
        with torch.no_grad():
            for func, args, kwargs, kept in self._calls:
                made = func(*args, **kwargs)
                for old, new in zip(tensors_in((kept,)), tensors_in((made,)), strict=True):
                    if old is not new and _storages((old,)) != _storages((new,)):
                        old.data.copy_(new)

    def reset(self) -> None:
        self._calls.clear()
        self._is_ready = False

    def pool(self) -> Any:
        self._need_capture("pool()")
        return self._pool

    def _need_capture(self, what: str) -> None:
        if not self._is_ready:
            raise RuntimeError(f"Called CUDAGraph::{what} without a preceding successful capture.")

    # A call keeps the state of the generator that it was given, and there is no graph of CUDA's to look at.
    register_generator_state = instantiate = enable_debug_mode = debug_dump = returning(None)


class _Capture(TorchDispatchMode):
    """Lists the operators of a thread, and keeps what they overwrite."""

    def __init__(self, calls: list[_Call]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._calls = calls
        self._own: set[int] = set()  # storages that were made while capturing
        self._before: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self._put_back = generators.keep_states()  # a replay draws random numbers, a capture none

    def end(self) -> None:
        take_out(self)
        self._put_back()
        with torch.no_grad():
            for tensor, content in self._before.values():
                tensor.data.copy_(content)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func._schema.name in _WAITS and any(device(each).type == "cuda" for each in tensors_in(args)):
            raise torch.AcceleratorError("CUDA error: operation not permitted when stream is capturing")
        for tensor in tensors_in(written_by(func, args, kwargs)):
            (where,) = _storages((tensor,))
            if where not in self._own and where not in self._before:
                self._before[where] = (whole := _whole(tensor)), whole.clone()
        out = func(*args, **kwargs)
        self._own |= _storages((out,)) - _storages((*args, *kwargs.values()))
        if torch.Tag.nondeterministic_seeded in getattr(func, "tags", ()):
            args, kwargs = pytree.tree_map(generators.state_of, (args, kwargs))
        self._calls.append((func, args, kwargs, out))
        return out


def _storages(values: tuple[Any, ...]) -> set[int]:
    return {each.untyped_storage().data_ptr() for each in tensors_in(values)}


def _whole(tensor: torch.Tensor) -> torch.Tensor:
    """Return a view of all of a tensor's storage."""
    with torch.no_grad():
        return torch.as_strided(tensor.detach(), (tensor.untyped_storage().nbytes() // tensor.itemsize,), (1,), 0)
