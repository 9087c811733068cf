"""Names of torch in the shape that they have in newer releases and in CUDA builds, arranged on the installed one."""

from __future__ import annotations

import ctypes
import importlib
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._C._distributed_c10d import HashStore
from torch.distributed import distributed_c10d
from torch.utils import _triton

import devtrace
from devtrace.simulation import upcast_ops

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
def test_whatever_nccl_means_takes_a_device_and_makes_groups_of_some_of_its_ranks(one: None, name: str) -> None:
    kind = getattr(c10d, name)
    group = kind(HashStore(), 0, 1, kind.Options(), CUDA)
    part = group.split(HashStore(), [0], kind.Options())
    assert (part.rank(), part.size(), type(part)) == (0, 1, kind)


def test_a_jagged_tensor_that_needs_a_gradient_gets_one(one: None) -> None:
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


def test_the_default_generator_of_an_accelerator_is_that_of_its_device(two: None) -> None:
    torch.cuda.manual_seed(3)
    torch.cuda.manual_seed_all(5)
    asked: Any = torch._C
    assert [asked._accelerator_getDefaultGenerator(index).initial_seed() for index in (0, 1)] == [5, 5]


def test_a_device_has_a_context_once_something_was_put_on_it(two: None) -> None:
    asked: Any = torch._C
    kept = torch.ones(2, device="cuda:1")
    assert [asked._cuda_hasPrimaryContext(index) for index in (0, 1)] == [False, True]
    assert kept.is_cuda


def test_a_build_with_cuda_keeps_its_own_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "cuda", "13.2")
    monkeypatch.setattr(torch._C, "_cuda_getCompiledVersion", lambda: 13020, raising=False)
    with devtrace.simulate("cuda:1"):
        asked: Any = torch._C
        assert (torch.version.cuda, asked._cuda_getCompiledVersion()) == ("13.2", 13020)


def test_sizes_of_workspaces_are_answered_and_results_of_tuning_refused(one: None) -> None:
    asked: Any = torch._C
    assert asked._cuda_getCublasWorkspaceSize() == asked._cuda_getCublasLtWorkspaceSize() == 32 << 20
    assert torch.cuda.current_solver_handle() == 0 if hasattr(torch.cuda, "current_solver_handle") else True
    with pytest.raises(devtrace.SimulateError, match=r"^simulate-limit: got a call for results of TunableOp"):
        torch.cuda.tunable.get_results()


@pytest.fixture
def triton(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A package that asks for the driver as Triton does."""
    runtime = tmp_path / "triton" / "runtime"
    runtime.mkdir(parents=True)
    (tmp_path / "triton" / "__init__.py").write_text("")
    (runtime / "__init__.py").write_text("from .driver import driver\n")
    (runtime / "driver.py").write_text(
        "class Config:\n"
        "    def __init__(self):\n        self.active = None\n"
        "    def set_active(self, driver):\n        self.active = driver\n"
        "driver = Config()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    others = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == "triton"}
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "triton"]:
        del sys.modules[name]
    sys.modules.update(others)


@pytest.mark.parametrize("is_loaded", [False, True])
def test_torch_finds_no_triton_and_a_launch_is_refused_in_a_sentence(
    is_loaded: bool, triton: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def driver() -> Any:
        return importlib.import_module("triton.runtime").driver

    monkeypatch.setattr(_triton, "has_triton_package", lambda: True)
    if is_loaded:
        driver()
    with devtrace.simulate("cuda:1"):
        assert not _triton.has_triton()
        with pytest.raises(devtrace.SimulateError, match=r"^simulate-limit: got a launch of a Triton kernel"):
            driver().active.get_current_device()
    assert driver().active is None


def test_a_transform_in_bfloat16_is_computed_wider_where_this_release_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for release, dtype in (("2.14.1", None), ("2.15.0", torch.complex64)):
        monkeypatch.setattr(torch, "__version__", release)
        upcast_ops.table.cache_clear()
        with (
            devtrace.simulate("cuda:1"),
            warnings.catch_warnings(action="ignore"),
        ):  # of a complex dtype since torch 2.14
            x = torch.ones(2, 6, device="cuda", dtype=torch.bfloat16)
            if dtype is None:
                with pytest.raises(RuntimeError, match="Unsupported dtype BFloat16"):
                    torch.fft.rfft(x)
            else:
                assert (torch.fft.rfft(x).dtype, torch.fft.rfft(x).device) == (dtype, CUDA)
                assert torch.stft(x, 4, window=x.new_ones(4), return_complex=True).dtype is dtype
    monkeypatch.undo()
    upcast_ops.table.cache_clear()


def test_a_warning_of_an_operator_names_the_line_of_the_program(recwarn: pytest.WarningsRecorder) -> None:
    library = torch.library.Library("aten", "IMPL")

    def kernel(x: torch.Tensor) -> torch.Tensor:
        caller = sys._getframe(1).f_code
        warnings.warn_explicit("beta", UserWarning, caller.co_filename, sys._getframe(1).f_lineno)
        return x.clone()

    library.impl("sign", kernel, "CPU", allow_override=True)
    with devtrace.record():
        for _ in range(2):
            torch.sign(torch.ones(2))
    found = [(warning.filename, warning.lineno) for warning in recwarn if str(warning.message) == "beta"]
    line = kernel.__code__.co_firstlineno + 8
    assert found == [(__file__, line)] * len(found) != []
    library._destroy()


@pytest.mark.parametrize("name", ["gather_single", "gather_into_tensor"])
def test_gathering_into_one_tensor_is_done_by_what_gloo_has(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError(f"Backend gloo does not support {name}")

    monkeypatch.setattr(c10d.ProcessGroup, name, refuse, raising=False)
    with devtrace.simulate("cuda:1"):
        c10d.init_process_group("nccl", store=HashStore(), rank=0, world_size=1)
        try:
            out, data = torch.zeros(1, 2, 3, device="cuda"), torch.ones(2, 3, device="cuda")
            getattr(c10d.group.WORLD, name)(out, data).wait()
            assert out.tolist() == [data.tolist()]
            with pytest.raises(RuntimeError, match="No backend type associated with device type cpu"):
                getattr(c10d.group.WORLD, name)(out.cpu(), data.cpu())
        finally:
            c10d.destroy_process_group()
