"""Every dtype in which CUDA has an operator, by torch's own list, works on a simulated device.

`make test` asks a part of the operators, DEVTRACE_SWEEP=whole all of them.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import cuda_truth
import pytest
import torch
from torch.nn import functional
from torch.utils import _pytree as pytree

import devtrace
import needs
from devtrace.simulation import upcast_ops

needs.imported("expecttest")
pytestmark = pytest.mark.slow

WHOLE = os.environ.get("DEVTRACE_SWEEP") == "whole"
DTYPES = (torch.bfloat16, torch.float16, torch.int64, torch.bool, torch.complex64)
# Kernels that exist for CUDA alone, and a sum that the CPU has for no complex dtype.
ONLY_ON_CUDA = {
    "torch.ops.aten._flash_attention_forward",
    "torch.ops.aten._efficient_attention_forward",
    "nansum",
    "_refs.nansum",
    "nanmean",
    "masked.nansum",
}


def operators(every: int) -> list[Any]:
    from torch.testing._internal.common_methods_invocations import op_db

    return list(op_db)[:: 1 if WHOLE else every]


def callable_of(op: Any) -> Any:
    """Find a transform as a program does: op_db has the functions that torch.fft had before the simulation."""
    return getattr(torch.fft, op.name.removeprefix("fft.")) if op.name.startswith("fft.") else op.op


def outcome(function: Any, sample: Any, device: str) -> list[torch.Tensor] | Exception:
    move = pytree.tree_map_only(torch.Tensor, lambda each: each.to(device, copy=True), list(sample))
    arguments, keywords = move
    torch.manual_seed(3)
    try:
        return [leaf for leaf in pytree.tree_leaves(function(*arguments, **keywords)) if isinstance(leaf, torch.Tensor)]
    except Exception as error:  # noqa: BLE001 (the CPU's error is an outcome too)
        return error


def samples(op: Any, dtype: torch.dtype) -> Iterator[tuple[Any, Any]]:
    torch.manual_seed(0)
    for sample in islice(cuda_truth.inputs(op, dtype), 2):
        yield (sample.input, *sample.args), sample.kwargs


def wrong(op: Any, dtype: torch.dtype) -> str:
    """Compare an operator's results with the CPU's, where the CPU has any."""
    for sample in samples(op, dtype):
        plain = outcome(op.op, sample, "cpu")
        there = outcome(callable_of(op), sample, "cuda")
        if isinstance(there, Exception):
            if isinstance(plain, Exception) and dtype in op.supported_dtypes("cpu"):
                continue
            return f"{there!r}"
        if any(not tensor.is_cuda for tensor in there):
            continue  # the sample names a device
        if isinstance(plain, Exception):
            continue
        if [each.dtype for each in plain] != [each.dtype for each in there]:
            return "another dtype"
    return ""


def wrong_ones(asked: list[tuple[Any, torch.dtype]]) -> dict[str, str]:
    with devtrace.simulate("cuda:1"), warnings.catch_warnings(action="ignore"):
        return {f"{op.name} {dtype}": words for op, dtype in asked if (words := wrong(op, dtype))}


def test_what_cuda_has_in_a_dtype_and_the_cpu_has_not_works_on_a_device() -> None:
    asked = [
        (op, dtype)
        for op in operators(1)
        for dtype in sorted(set(op.supported_dtypes("cuda")) - set(op.supported_dtypes("cpu")), key=str)
        if op.name not in ONLY_ON_CUDA
    ]
    assert wrong_ones(asked) == {}
    assert len(asked) > 50


def test_every_operator_works_in_the_dtypes_that_cuda_has() -> None:
    asked = [
        (op, dtype)
        for op in operators(12)
        for dtype in DTYPES
        if dtype in op.supported_dtypes("cuda") and op.name not in ONLY_ON_CUDA
    ]
    assert wrong_ones(asked) == {}


def test_what_the_cpu_refuses_is_computed_wider_on_a_device_and_stays_refused_on_the_host() -> None:
    x = torch.rand(4, 4).half()
    assert torch.float16 in upcast_ops.table()["_fft_r2c"]
    assert torch.int64 in upcast_ops.table()["histc"]
    with pytest.raises(NotImplementedError):
        torch.histc(torch.arange(3), bins=3, min=0, max=2)
    with devtrace.simulate("cuda:1"), warnings.catch_warnings(action="ignore"):
        counts = torch.histc(torch.arange(3, device="cuda"), bins=3, min=0, max=2)
        assert (counts.dtype, counts.tolist()) == (torch.int64, [1, 1, 1])
        spectrum = torch.fft.rfft(x.cuda())
        assert (spectrum.dtype, spectrum.device) == (torch.complex32, torch.device("cuda:0"))
        assert torch.fft.irfft(spectrum).dtype is torch.float16
        assert torch.ones(2, device="cuda", dtype=torch.complex32).sqrt_().dtype is torch.complex32
        with pytest.raises(NotImplementedError):  # what the host has not stays refused there
            torch.histc(torch.arange(3), bins=3, min=0, max=2)


@pytest.mark.parametrize("narrow", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize(
    "call",
    [
        lambda x, y: x @ y,
        lambda x, y: y @ x,
        lambda x, y: functional.linear(x, y),
        lambda x, y: functional.linear(x, y, y[0]),
        lambda x, y: functional.linear(x, x, y[0]),
        lambda x, y: torch.bmm(x[None], y[None]),
        lambda x, y: torch.mv(x, y[0]),
        lambda x, y: torch.dot(x[0], y[0]),
        lambda x, y: torch.baddbmm(y[None], x[None], x[None]),
        lambda x, y: functional.conv1d(x[None], y[None]),
        lambda x, y: functional.conv1d(x[None], x[None], y[0]),
        lambda x, y: functional.scaled_dot_product_attention(x[None], y[None], x[None]),
        lambda x, y: x.index_copy(0, torch.arange(4, device=x.device), y),
        lambda x, y: x.scatter(0, torch.zeros(4, 4, dtype=torch.long, device=x.device), y),
        lambda x, y: x.masked_scatter(x > 0, y),
    ],
)
def test_what_mixes_dtypes_is_refused_on_a_device_as_on_the_host(
    call: Callable[[torch.Tensor, torch.Tensor], object], narrow: torch.dtype
) -> None:
    x, y = torch.ones(4, 4, dtype=narrow), torch.ones(4, 4)
    with pytest.raises(RuntimeError, match="type"):
        call(x, y)
    with devtrace.simulate("cuda:1"), pytest.raises(RuntimeError, match="type"):
        call(x.cuda(), y.cuda())
