"""What devtrace reads of a tensor reaches no TorchFunctionMode and no `__torch_function__` of the user's.

Every read counts: `tensor.device` is a call that they see. Reads go through torch's own class, so that a property of a
subclass does not run either.
"""

import gc
from collections.abc import Iterator
from itertools import compress
from typing import Any, Final

import torch

_C: Final[Any] = torch._C
_Base: Final[Any] = torch._C.TensorBase
ALL_DISABLED: Final = _C._TorchFunctionState.ALL_DISABLED
function_state: Final = _C._get_torch_function_state
set_function_state: Final = _C._set_torch_function_state

Quiet: Final = _C.DisableTorchFunction
"""A block in which nobody sees torch's functions called."""


class Restored:
    """Calls an operator in the state that the program was in, and hides again what comes after it."""

    __slots__ = ("_call", "_state")

    def __init__(self, call: Any, state: Any) -> None:
        self._call = call
        self._state = state

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        set_function_state(self._state)
        try:
            return self._call(*args, **kwargs)
        finally:
            set_function_state(ALL_DISABLED)


shape_of: Final = _Base.shape.__get__
dim_of: Final = _Base.dim
length_of: Final = _Base.size
dtype_of: Final = _Base.dtype.__get__
bytes_of: Final = _Base.nbytes.__get__
gradient_of: Final = _Base.grad.__get__
is_leaf: Final = _Base.is_leaf.__get__
storage_of: Final = _Base.untyped_storage
offset_of: Final = _Base.storage_offset
strides_of: Final = _Base.stride

PLAIN: Final = (torch.Tensor, torch.nn.Parameter)
function_modes: Final = _C._len_torch_function_stack
"""While there are none, nobody sees what is read of a plain tensor. That is cheaper to ask than to be `Quiet`."""

kinds_that_outlived_their_device: list[Any] = []
"""A simulation puts its class of tensors here that it leaves behind: their `device` is what they were made on."""


def device_of(tensor: Any) -> torch.device:
    """Read `.device`, which a simulation replaces on torch's class."""
    for kind in kinds_that_outlived_their_device:
        if issubclass(type(tensor), kind):
            device_then: torch.device = kind.device.__get__(tensor)
            return device_then
    device: torch.device = torch.Tensor.device.__get__(tensor)
    return device


def own_storage(tensor: Any) -> Any:
    """Return a tensor's storage; None for one that has none of its own: sparse, wrapped, or without data."""
    try:
        return storage_of(tensor)
    except (NotImplementedError, RuntimeError):
        return None


def untransformed(tensor: Any) -> Any:
    """Return the tensor that `vmap`, `grad` and the like go through with a wrapper; any other as it is."""
    while _C._functorch.is_functorch_wrapped_tensor(tensor):
        tensor = _C._functorch.get_unwrapped(tensor)
    return tensor


def is_tensor(value: object) -> bool:
    """Ask the class and not the value, whose `__class__` may be the user's code."""
    return issubclass(type(value), torch.Tensor)


def tensors_alive() -> list[Any]:
    """Return every tensor that the garbage collector knows: of millions of objects, each asked for its class in C."""
    kinds = set(map(id, _kinds(torch.Tensor)))
    alive = gc.get_objects()
    return list(compress(alive, map(kinds.__contains__, map(id, map(type, alive)))))


def _kinds(kind: type) -> Iterator[type]:
    yield kind
    sub: type
    for sub in type.__subclasses__(kind):
        yield from _kinds(sub)
