"""The dispatch mode below all others: finds the handler of each operator, and lets torch's own tracing pass."""

import re
import threading
from contextlib import ExitStack
from typing import Any, Final
from weakref import WeakSet

import torch

from devtrace.runtime.mode_stack import as_tensors, at_the_bottom
from devtrace.runtime.patches import Call, Patches
from devtrace.runtime.quiet import ALL_DISABLED, Quiet, function_modes, function_state
from devtrace.runtime.tracebacks import leave
from devtrace.simulation import upcast_ops
from devtrace.simulation.allocation.allocator import out_of_memory
from devtrace.simulation.cuda_features.scripts import running
from devtrace.simulation.devices import DEVICES
from devtrace.simulation.handlers import MIXED, Func, OpMode, common_owner, handlers, make_handler
from devtrace.simulation.storage_tags import HOST, tag_of, tensors_in

_NO_KWARGS: dict[str, Any] = {}


def install(patches: Patches, undo: ExitStack) -> None:
    """Let `torch.tensor(..., device=)` copy where the mode sees it, and give each new thread a mode of its own."""
    torch._C._set_only_lift_cpu_tensors(True)
    undo.callback(torch._C._set_only_lift_cpu_tensors, False)
    patches.wrap(threading.Thread, "_bootstrap_inner", _bootstrap)  # and not `run`: subclasses override that
    undo.callback(_retire_modes)


def _bootstrap(original: Call, thread: threading.Thread) -> None:
    with at_the_bottom(new_mode()):
        original(thread)


class SimulationMode(OpMode):
    """Gives one thread its simulation's devices."""

    supports_higher_order_operators = True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        try:
            if _traced_by_jit() is not None and _is_excluded(_TRACER) and func._opname not in _NOTED_BY_HAND:
                return self._while_traced(func, types, args, kwargs)
            if function_modes() and isinstance(func, Func) and function_state() != ALL_DISABLED:
                with Quiet():
                    return self.__torch_dispatch__(func, types, args, kwargs)
            if _height():
                if _of_torch(_FAKE) is not None:
                    return func(*args, **(kwargs or _NO_KWARGS))  # which computes nothing and knows devices by itself
                if _of_torch(_PROXY) is not None or _of_torch(_FUNCTIONAL) is not None:
                    return self._after_torchs_tracing(func, types, args, kwargs or _NO_KWARGS)
            if types and any(kind.__torch_dispatch__ is not torch._C._disabled_torch_dispatch_impl for kind in types):
                return NotImplemented
            handler = handlers.get(id(func)) or make_handler(func)
            try:
                return handler(self, func, args, kwargs or _NO_KWARGS)
            except torch.OutOfMemoryError:
                raise
            except RuntimeError as error:
                _name_cuda_type_in(error, func, args)
                _refuse_without_host_memory(error, args, kwargs or _NO_KWARGS)
                tensors = as_tensors(error, func, args)
                retry = _cuda_only_op(func, args, kwargs or _NO_KWARGS, error) if tensors is None else func
                if retry is None:
                    raise
            return handler(self, retry, args if tensors is None else tensors, kwargs or _NO_KWARGS)
        except BaseException as error:
            leave(error)
            running.words = str(error)  # which TorchScript's interpreter loses
            raise

    def _while_traced(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Let torch.jit.trace see what an operator does that it did not note itself, such as a convolution."""
        excluded = torch._C._dispatch_tls_local_exclude_set().remove(_TRACER)
        with torch._C._ForceDispatchKeyGuard(torch._C._dispatch_tls_local_include_set(), excluded):
            return self.__torch_dispatch__(func, types, args, kwargs)

    def _after_torchs_tracing(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Let torch's tracing mode, which lies below all others, answer first, so that it sees simulated devices."""
        key = _FUNCTIONAL if _of_torch(_FUNCTIONAL) is not None else _PROXY
        tracing: Any = torch._C._unset_dispatch_mode(key)
        try:
            with self:
                return tracing.__torch_dispatch__(func, types, args, kwargs)
        finally:
            torch._C._set_dispatch_mode(tracing)


MODES: Final = WeakSet[SimulationMode]()


def new_mode() -> SimulationMode:
    MODES.add(mode := SimulationMode())
    return mode


def _retire_modes() -> None:
    """A thread that outlives the simulation keeps its mode, which no longer does anything."""
    for mode in list(MODES):
        mode.__class__ = RetiredMode
    MODES.clear()


class RetiredMode(SimulationMode):
    """A mode after its simulation: it does nothing."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or _NO_KWARGS))


def _cuda_only_op(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], refusal: RuntimeError) -> Any:
    if not isinstance(func, Func) or common_owner((*args, *kwargs.values())) in (None, HOST, MIXED):
        return None
    if _IS_OF_TWO_DTYPES.search(str(refusal)):  # CUDA refuses that too; in a wider dtype both would be the same
        return None
    return upcast_ops.instead_of(func, args, kwargs)


def _refuse_without_host_memory(error: Exception, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise CUDA's error where the host, whose memory holds all simulated tensors, has no more of it."""
    match = re.search(r"you tried to allocate (\d+) bytes", str(error))
    device = kwargs.get("device")
    owners = [DEVICES.find(device)] if device is not None and device.type == "cuda" else []
    owners += [owner for tensor in tensors_in(args) if (owner := tag_of(tensor).owner).device is not None]
    if match is not None and owners:
        owners[0].refused = int(match[1])
        raise out_of_memory(owners[0].index, owners[0].total, owners[0].memory, int(match[1])) from None


def _name_cuda_type_in(refusal: RuntimeError, func: Any, args: tuple[Any, ...]) -> None:
    """Say `torch.cuda.FloatTensor` in a refusal that names the CPU's type for a simulated device's tensor."""
    match = _CHECKED_TYPE.search(str(refusal))
    names = [argument.name for argument in func._schema.arguments[: len(args)]] if match is not None else []
    if match is not None and match[1] in names and common_owner((args[names.index(match[1])],)) not in (None, HOST):
        refusal.args = (str(refusal).replace("but got torch.", "but got torch.cuda.", 1),)


_CHECKED_TYPE = re.compile(r"^Expected tensor for argument #\d+ '(\w+)' .* but got torch\.\w+Tensor instead", re.DOTALL)
_IS_OF_TWO_DTYPES = re.compile(
    r"same (?:d|scalar )?type|expected scalar type|but (?:found|got) \S+ instead|can't be cast"
)
_of_torch, _height = torch._C._get_dispatch_mode, torch._C._len_torch_dispatch_stack
_traced_by_jit, _is_excluded = torch._C._get_tracing_state, torch._C._dispatch_tls_is_dispatch_key_excluded
_TRACER = torch._C._dispatch_key_parse("Tracer")
_NOTED_BY_HAND = {"copy_", "resize_", "resize_as_", "detach", "detach_"}  # TraceTypeManual.cpp of torch
_FAKE = torch._C._TorchDispatchModeKey.FAKE
_PROXY = torch._C._TorchDispatchModeKey.PROXY
_FUNCTIONAL = torch._C._TorchDispatchModeKey.FUNCTIONAL
