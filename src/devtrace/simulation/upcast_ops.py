"""Operators that CUDA has for a dtype and the CPU has not: computed in a wider dtype, and cast back.

`cuda_dtypes.tsv` lists them, by torch's own description of its operators (op_db, `dtypesIfCUDA`). Only what the CPU has
refused is asked again, so everything else keeps the CPU's values.
"""

import functools
from contextlib import nullcontext
from typing import Any

import torch
from torch.utils import _pytree as pytree

from devtrace.runtime.patches import Call, Depth, Patches
from devtrace.runtime.requirements import release_of
from devtrace.runtime.tables import rows_of
from devtrace.simulation.cuda_features import cuda_kernels
from devtrace.simulation.storage_tags import tag_of, tensors_in, written_by

_WIDER = {
    torch.float16: torch.float32,
    torch.bfloat16: torch.float32,
    torch.complex32: torch.complex64,
    torch.bool: torch.uint8,
    **dict.fromkeys((torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64), torch.float64),
}
_REAL_AND_COMPLEX = {torch.float16: torch.complex32, torch.complex32: torch.float16}


@functools.cache
def table() -> dict[str, frozenset[torch.dtype]]:
    """Operator without overload -> the dtypes that only CUDA has, by the release of torch that is installed."""
    dtypes: dict[str, frozenset[torch.dtype]] = {}
    for op, names, *since in rows_of("simulation/cuda_dtypes.tsv"):
        if all(release_of(torch.__version__) >= release_of(release) for release in since):
            dtypes[op] = dtypes.get(op, frozenset()) | {getattr(torch, name) for name in names.split()}
    return dtypes


def install(patches: Patches) -> None:
    """`torch.fft`, which looks at dtypes above the dispatcher."""
    for name, function in list(vars(torch.fft).items()):
        if type(function).__name__ == "builtin_function_or_method" and not name.endswith(("freq", "shift")):
            patches.wrap(torch.fft, name, _transform)


def _transform(function: Call, *args: Any, **kwargs: Any) -> Any:
    data: Any = args[0] if args else kwargs.get("input")
    narrow = data.dtype if isinstance(data, torch.Tensor) else None
    if narrow not in table()["_fft_r2c"] or tag_of(data).owner.device is None:
        return function(*args, **kwargs)
    is_half = narrow is torch.float16
    with half_transforms if is_half else nullcontext():
        return call_wider(function, narrow, args, kwargs, stays_wide=not is_half)


half_transforms = Depth()
"""Transforms of half precision that are computed wider in this thread."""


def check_sizes(func: Any, args: tuple[Any, ...]) -> None:
    """Refuse what cuFFT refuses in half precision; the words are of aten/src/ATen/native/cuda/CuFFTPlanCache.h."""
    sizes = [args[0].shape[dim] for dim in args[1]]
    if func._schema.name == "aten::_fft_c2r":
        sizes[-1] = args[3]  # of the result
    if any(size & (size - 1) for size in sizes):
        raise RuntimeError(
            "cuFFT only supports dimensions whose sizes are powers of two when computing in half precision, "
            f"but got a signal size of{sizes}"
        )


def instead_of(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call | None:
    """Return what computes an operator that the CPU has refused, if CUDA has it for one of its tensors' dtypes."""
    name = func._schema.name.removeprefix("aten::")
    if func._overloadname in cuda_kernels.IN_A_DTYPE:
        return cuda_kernels.product_in_a_dtype(func, args)
    if name in cuda_kernels.BY_OPERATOR and not func._schema.is_mutable:
        return cuda_kernels.BY_OPERATOR[name]
    only_cuda = table().get(name.rstrip("_"), frozenset())
    narrow = next((t.dtype for t in tensors_in((*args, *kwargs.values())) if t.dtype in only_cuda), None)
    return None if narrow is None else Wider(func, narrow)


class Wider:
    """An operator of torch whose tensors of one dtype are cast before, and its results after."""

    def __init__(self, func: Any, narrow: torch.dtype) -> None:
        self._func = func
        self._narrow = narrow
        self._op = self.__call__  # which the handler of a view calls

    def __getattr__(self, name: str) -> Any:
        return getattr(self._func, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        is_transform = self._func._schema.name.startswith("aten::_fft_")
        stays_wide = is_transform and self._narrow is torch.bfloat16
        if is_transform and not stays_wide:
            check_sizes(self._func, args)
        out = call_wider(self._func, self._narrow, args, kwargs, stays_wide=stays_wide)
        targets = list(written_by(self._func, args, kwargs))  # in place, or as `out=`
        if not targets:
            return out
        results = [out] if isinstance(out, torch.Tensor) else list(out)
        returned = [target.copy_(result) for target, result in zip(targets, results, strict=False)]
        return returned[0] if isinstance(out, torch.Tensor) else tuple(returned)


def call_wider(function: Call, narrow: torch.dtype, args: Any, kwargs: Any, *, stays_wide: bool = False) -> Any:
    """Call a function with each tensor and dtype that is `narrow` wider, and cast what it returns back.

    `stays_wide`: a transform of bfloat16, for which there is no complex dtype.
    """
    wide = _WIDER[narrow]
    narrow_of = {} if stays_wide else {wide: narrow}
    if narrow in _REAL_AND_COMPLEX:
        other = _REAL_AND_COMPLEX[narrow]
        narrow_of[_WIDER[other]] = other

    def widen(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value.to(wide) if value.dtype is narrow else value
        return wide if value is narrow else value

    def cast_back(value: Any) -> Any:
        return value.to(narrow_of.get(value.dtype, value.dtype)) if isinstance(value, torch.Tensor) else value

    args, kwargs = pytree.tree_map(widen, (args, kwargs))
    return pytree.tree_map(cast_back, function(*args, **kwargs))
