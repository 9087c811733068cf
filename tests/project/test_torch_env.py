"""Placeholders for the CUDA libraries: a CUDA build of torch loads without NVIDIA's packages, and finds no driver."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from torch_env import Symbol, make_placeholders, placed

METADATA = """\
Requires-Dist: sympy>=1.13.3
Requires-Dist: nvidia-cudnn-cu13==9.26.0.51; platform_system == "Linux"
"""
LIKE_TORCH = """\
int cudaGetDeviceCount(int *); long cudnnGetVersion(void); long ncclSend(void); const char *cudaGetErrorString(int);
int devices(void) { int count = 7; int error = cudaGetDeviceCount(&count); return 100 * count + error; }
long cudnn(void) { return cudnnGetVersion(); }
long send(void) { return ncclSend(); }
const char *said(void) { return cudaGetErrorString(35); }
"""
THEIRS = {
    "libcudart.so.13": "int cudaGetDeviceCount(int *n) { return 0; } char *cudaGetErrorString(int e) { return 0; }",
    "libcudnn.so.9": "long cudnnGetVersion(void) { return 0; }",
    "libnccl.so.2": "long ncclSend(void) { return 0; }",
}


def build(target: Path, source: str, *flags: str | Path) -> None:
    code = target.with_name("code.c")
    code.write_text(source)
    subprocess.run(["gcc", "-shared", "-fPIC", "-w", "-o", target, code, *flags], check=True)


@pytest.fixture
def torch_like(tmp_path: Path) -> Path:
    """Build a library that was linked with three of NVIDIA's; they are gone, and two of them give names a version."""
    if not shutil.which("gcc") and os.environ.get("CI") != "true":
        pytest.skip("there is no gcc")
    versions = tmp_path / "versions"
    for name, source in THEIRS.items():
        versions.write_text(f"{name} {{ global: *; }};" if name != "libnccl.so.2" else "{ global: *; };")
        build(tmp_path / name, source, f"-Wl,-soname,{name}", f"-Wl,--version-script={versions}")
    target = tmp_path / "libtorch_cuda.so"
    build(target, LIKE_TORCH, *(tmp_path / name for name in THEIRS), "-Wl,-rpath,$ORIGIN")
    for name in THEIRS:
        (tmp_path / name).unlink()
    return target


def test_a_cuda_build_loads_with_placeholders_and_finds_no_driver(torch_like: Path) -> None:
    with pytest.raises(OSError, match="cannot open shared object file"):
        ctypes.CDLL(str(torch_like))
    make_placeholders(torch_like.parent, METADATA, "torch/lib/libtorch_cuda.so,sha256=,1\n")
    library = ctypes.CDLL(str(torch_like))
    library.said.restype = ctypes.c_char_p
    assert (library.devices(), library.cudnn(), library.send()) == (35, 92600, 35)
    assert library.said() == b"CUDA driver version is insufficient for CUDA runtime version"


def test_what_torch_brings_itself_is_not_replaced(torch_like: Path) -> None:
    record = "torch/lib/libcudart.so.13,sha256=,1\ntorch/lib/libcudnn.so.9,sha256=,1\n"
    make_placeholders(torch_like.parent, METADATA, record)
    assert {path.name for path in torch_like.parent.glob("lib*")} == {"libtorch_cuda.so", "libnccl.so.2"}


def test_a_name_goes_to_the_library_that_its_version_names_or_that_it_begins_with() -> None:
    libraries = [
        "libcublas.so.13",
        "libcublasLt.so.13",
        "libcusparse.so.12",
        "libcusparseLt.so.0",
        "libnvshmem_host.so.3",
    ]
    names = {
        Symbol("cublasLtMatmul", "libcublasLt.so.13"): "libcublasLt.so.13",
        Symbol("cusparseLtInit", ""): "libcusparseLt.so.0",
        Symbol("cusparseCreate", ""): "libcusparse.so.12",
        Symbol("nvshmem_ptr", "NVSHMEM"): "libnvshmem_host.so.3",
    }
    found = placed([*names, Symbol("memcpy", "GLIBC_2.14"), Symbol("PyObject_Call", "")], libraries)
    assert {symbol: library for library, symbols in found.items() for symbol in symbols} == names
