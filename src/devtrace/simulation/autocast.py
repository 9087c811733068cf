"""`torch.autocast("cuda")`: CUDA's own lists of what runs in which precision, for tensors that C++ takes for the CPU's.

torch registers its kernels for CUDA's autocast key also in a CPU build. Tensors here do not carry that key and would
not count as CUDA's, so our kernels replace them while a simulation runs. Entering autocast puts the key into the
thread's set. It lies above autograd, as there, so gradients come back in the precision of the parameters.
"""

from __future__ import annotations

import functools
import warnings
import weakref
from contextlib import ExitStack
from typing import Any

import torch
from torch.utils import _pytree as pytree

from devtrace.runtime.patches import Call, Patches
from devtrace.runtime.tables import rows_of
from devtrace.simulation.storage_tags import given_to
from devtrace.simulation.tensors import device

Op = torch._ops.OpOverload

_KEY = "AutocastCUDA"
_is_cached_tensor: Call = vars(torch._C)["_is_cached_tensor"]
_BANNED = (
    "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.\n"
    "Many models use a sigmoid layer right before the binary cross entropy layer.\n"
    "In this case, combine the two layers using torch.nn.functional.binary_cross_entropy_with_logits\n"
    "or torch.nn.BCEWithLogitsLoss.  binary_cross_entropy_with_logits and BCEWithLogits are\n"
    "safe to autocast."
)


def install(patches: Patches, undo: ExitStack) -> None:
    """Autocast's switches; the kernels come with the first use."""
    casts = Casts()
    register_once = functools.cache(lambda: register(casts, undo))

    def set_enabled(original: Call, *args: Any) -> None:
        original(*args)
        if len(args) == 1 or str(args[0]).partition(":")[0] == "cuda":  # torch.autocast takes "cuda:0", too
            is_on = bool(args[-1])
            if is_on:
                register_once()
            torch._C._dispatch_tls_set_dispatch_key_included(_KEY, is_on)

    def clear(original: Call) -> None:
        original()
        casts.weights.clear()

    patches.wrap(torch, "set_autocast_enabled", set_enabled)
    patches.wrap(torch, "clear_autocast_cache", clear)
    undo.callback(torch._C._dispatch_tls_set_dispatch_key_included, _KEY, False)


def register(casts: Casts, undo: ExitStack) -> None:
    """Put our kernels at CUDA's autocast key, until the end of the simulation."""
    library = torch.library.Library("aten", "IMPL")
    undo.callback(library._destroy)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a kernel is replaced is what we want
        for name, policy in policies().items():
            packet, _, overload = name.partition(".")
            op = getattr(getattr(torch.ops.aten, packet, None), overload or "default", None)
            if op is not None:
                library.impl(name, _kernel(op, getattr(casts, policy)), _KEY, allow_override=True)


@functools.cache
def policies() -> dict[str, str]:
    """Operator with overload -> the name of its policy, a method of Casts."""
    return dict(rows_of("simulation/cuda_autocast.tsv"))


def _kernel(op: Op, policy: Call) -> Call:
    autocast_keys = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCUDA)

    def kernel(*args: Any, **kwargs: Any) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(autocast_keys):
            return policy(op, args, kwargs)

    return kernel


class Casts:
    """Policies, one a method: each gets an operator and its arguments with autocast off, and calls it."""

    def __init__(self) -> None:
        self.weights: dict[int, tuple[weakref.ref[torch.Tensor], torch.Tensor]] = {}

    def lower(self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Matrix products and convolutions: in autocast's own precision."""
        return self._call_in(op, torch.get_autocast_dtype("cuda"), args, kwargs)

    def fp32(self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Losses, norms, exponentials."""
        return self._call_in(op, torch.float32, args, kwargs)

    def fp32_dtype(self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Sums and softmax: in float32, unless the program gives a dtype."""
        values = {spec.name: value for spec, value in given_to(op, args, kwargs)}
        if values["dtype"] is None and eligible(args[0]):
            args, kwargs = args[: list(values).index("dtype")], {**kwargs, "dtype": torch.float32}  # by name only
        return op(*args, **kwargs)

    def fp32_append(self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """`norm`, which has overloads of its own for a dtype."""
        if not eligible(args[0]):
            return op(*args, **kwargs)
        packet = torch.ops.aten.norm
        wide = packet.ScalarOpt_dim_dtype if op is packet.ScalarOpt_dim else packet.ScalarOpt_dtype
        return wide(*args, **kwargs, dtype=torch.float32)

    def promote(self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Several inputs that must have one type: the widest."""
        dtypes = {value.dtype for value in pytree.tree_leaves((args, kwargs)) if eligible(value)}
        dtype = torch.float32 if torch.float32 in dtypes else torch.get_autocast_dtype("cuda")
        return self._call_in(op, dtype, args, kwargs)

    def banned(self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if eligible(args[0]):
            raise RuntimeError(_BANNED)
        return op(*args, **kwargs)

    def _call_in(self, op: Op, dtype: torch.dtype, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        args, kwargs = pytree.tree_map(lambda value: self._cast(value, dtype), (args, kwargs))
        return op(*args, **kwargs)

    def _cast(self, value: Any, dtype: torch.dtype) -> Any:
        """Cast what is eligible. The cast of a parameter is kept until autocast ends, as in torch's own cache."""
        if not eligible(value) or value.dtype is dtype:
            return value
        is_weight = value.requires_grad and value.is_leaf and value.dtype is torch.float32
        if not is_weight or not torch.is_autocast_cache_enabled() or _is_cached_tensor(value):
            return value.to(dtype)
        entry = self.weights.get(id(value))
        if entry is None or entry[0]() is not value:  # or the id is of a parameter that died
            entry = self.weights[id(value)] = weakref.ref(value), value.to(dtype)
        return entry[1]


def eligible(value: Any) -> bool:
    """Return whether CUDA's autocast may cast a value: its own floating-point tensors, doubles excepted."""
    is_castable = isinstance(value, torch.Tensor) and value.is_floating_point() and value.dtype is not torch.float64
    return is_castable and device(value).type == "cuda"
