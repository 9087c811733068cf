"""Calls of torch that take another path under any dispatch mode: they take here the path that they take without one.

`torch.ctc_loss` is the only one known that then refuses what it takes otherwise. Without a mode it reads lengths that
are tensors into lists of the host. Under one it keeps them as tensors, and on CUDA these must then be on the device.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.compiler import is_compiling

from devtrace.runtime.mode_stack import all_are_ours
from devtrace.runtime.patches import Patches

_own_device: Any = torch._C.TensorBase.device.__get__  # a simulated one is the CPU here
_PLAIN = (torch.Tensor, torch.nn.Parameter)
_INTEGRAL = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def install(patches: Patches) -> None:
    patches.set(torch, "ctc_loss", _with_lengths_on_the_host(torch.ctc_loss))


def _with_lengths_on_the_host(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def ctc_loss(
        log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, *args: Any, **kwargs: Any
    ) -> Any:
        given = (log_probs, targets, input_lengths, target_lengths)
        if not is_compiling() and all(type(each) in _PLAIN for each in given) and _reads_lengths(given, args, kwargs):
            lengths = (each.to("cpu", torch.int64).tolist() for each in (input_lengths, target_lengths))
            return original(log_probs, targets, *lengths, *args, **kwargs)
        return original(*given, *args, **kwargs)

    return ctc_loss


def _reads_lengths(given: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return whether torch would read the lengths, were it not for our modes."""
    if torch._C._len_torch_function_stack() or not all_are_ours():
        return False
    if any(torch._C._functorch.is_functorch_wrapped_tensor(each) for each in given):
        return False
    if any(each.dtype not in _INTEGRAL or each.dim() != 1 for each in given[2:]):
        return False
    blank = args[0] if args else kwargs.get("blank", 0)
    return not (_own_device(given[0]).type == "cuda" and _cudnn_takes(*given, blank))


def _cudnn_takes(*given: Any) -> bool:
    with torch._C._DisableTorchDispatch():
        return bool(torch._use_cudnn_ctc_loss(*given))
