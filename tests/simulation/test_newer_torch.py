"""Names of torch in the shape that they have in newer releases and in CUDA builds, arranged on the installed one."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._C._distributed_c10d import HashStore
from torch.distributed import distributed_c10d

import devtrace

c10d: Any = distributed_c10d
CUDA = torch.device("cuda:0")
_CPU_GUARD, _CUDA_GUARD, _META_GUARD = 0, 1, 14


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return 2 * x

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return (2 * grad).cpu()


def test_a_function_whose_apply_is_written_in_c_is_checked_as_one_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    base: Any = torch._C._FunctionBase
    doubled: Any = Doubled
    monkeypatch.setattr(torch.autograd.Function, "apply", vars(base)["apply"])
    with devtrace.simulate("cuda:1"):
        x = torch.ones(2, device="cuda", requires_grad=True)
        out = doubled.apply(x)
        with pytest.raises(RuntimeError, match="expected device cuda:0 but got cpu"):
            out.sum().backward()
    assert vars(torch.autograd.Function)["apply"] is vars(base)["apply"]


@pytest.fixture
def guards() -> Iterator[Any]:
    library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libc10.so"))
    table = (ctypes.c_void_p * 15).in_dll(library, "_ZN3c104impl26device_guard_impl_registryE")
    before = table[_CUDA_GUARD]
    yield table
    table[_CUDA_GUARD] = before


def test_the_guard_of_a_build_that_finds_no_device_is_replaced_and_put_back(guards: Any) -> None:
    own = guards[_CUDA_GUARD] = guards[_META_GUARD]
    with devtrace.simulate("cuda:1"):
        assert guards[_CUDA_GUARD] == guards[_CPU_GUARD] != own
    assert guards[_CUDA_GUARD] == own


def test_the_guard_of_a_build_with_devices_stays(guards: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    own = guards[_CUDA_GUARD] = guards[_META_GUARD]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    with devtrace.simulate("cuda:1", force=True):
        assert guards[_CUDA_GUARD] == own


@pytest.mark.parametrize("name", ["ProcessGroupNCCL", "ProcessGroupNCCL2", "ProcessGroupNCCLLazy"])
def test_whatever_nccl_means_takes_a_device_and_makes_groups_of_some_of_its_ranks(name: str) -> None:
    with devtrace.simulate("cuda:1"):
        kind = getattr(c10d, name)
        group = kind(HashStore(), 0, 1, kind.Options(), CUDA)
        part = group.split(HashStore(), [0], kind.Options())
        assert (part.rank(), part.size(), type(part)) == (0, 1, kind)


def test_a_jagged_tensor_that_needs_a_gradient_gets_one() -> None:
    with devtrace.simulate("cuda:1"):
        rows = [torch.ones(2), torch.ones(3)]
        jagged = torch.nested.nested_tensor(rows, layout=torch.jagged, device="cuda", requires_grad=True)
        (3 * jagged).values().sum().backward()
        assert jagged.grad is not None
        assert jagged.grad.device == CUDA
        assert jagged.grad.values().tolist() == [3.0] * 5


def test_what_a_part_adds_while_it_is_installed_is_undone_with_it() -> None:
    kernels = torch._C._dispatch_dump("aten::mm")
    with devtrace.simulate("cuda:1"), torch.autocast("cuda"):
        assert (torch.ones(2, 2, device="cuda") @ torch.ones(2, 2, device="cuda")).dtype is torch.float16
        assert torch._C._dispatch_dump("aten::mm") != kernels
    assert torch._C._dispatch_dump("aten::mm") == kernels
