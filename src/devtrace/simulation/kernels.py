"""The kernels from which an operator of a package chooses in a simulation."""

import sys
from collections.abc import Iterable
from typing import Any

import torch

CPU = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
_CUDA = torch._C.DispatchKeySet(torch._C.DispatchKey.CUDA)
_BELOW_MODES = torch._C._dispatch_keyset_full_after(torch._C.DispatchKey.Python)


def kernels_for(func: Any, tensors: Iterable[torch.Tensor], *, on_device: bool) -> Any:
    """Return those that eager torch would choose from: quantized and sparse tensors have their own."""
    if on_device and _runs_python_on_cuda(func):
        return _CUDA
    keys = CPU
    for tensor in tensors:
        keys |= torch._C._dispatch_keys(tensor) & _BELOW_MODES
    return keys


def _runs_python_on_cuda(func: Any) -> bool:
    """Return whether Python code was registered as the operator's kernel for CUDA. Triton's needs a real device."""
    overload = "" if func._overloadname == "default" else f".{func._overloadname}"
    if f"{func.namespace}/{func._opname}{overload}/CUDA" not in torch.library._impls:
        return False
    return "triton" not in sys.modules or not torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CPU")
