"""Calls of torch that take another path under any dispatch mode: they take here the path that they take without one.

What reads data in C++ asks no `__torch_function__`, but a mode's own call of an operator does: a copy of a subclass's
tensor would be of the subclass. Two calls are known that refuse what they take otherwise. `torch.ctc_loss` reads
lengths that are tensors into lists of the host; under a mode it keeps them as tensors, and on CUDA these must then be
on the device. A subclass of `torch.Tensor` that is called makes a plain tensor first, which a mode has given a Python
object by then.

Singular values and eigenvalues alone come out an ulp from those without a mode: torch's C++ leaves the vectors out only
where no mode is on (`isTensorSubclassLike`), and with them it takes another algorithm. Where Python asks for values
only, a mode above ours sets the flag back.
"""

import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import torch
from torch.autograd import forward_ad
from torch.compiler import is_compiling
from torch.overrides import has_torch_function
from torch.utils._device import _device_constructors

from devtrace.runtime.mode_stack import BesideCompile, all_are_ours, on_top
from devtrace.runtime.patches import Call, Patches
from devtrace.runtime.quiet import PLAIN, Quiet, is_tensor
from devtrace.runtime.torch_names import take

_own_device: Any = torch._C.TensorBase.device.__get__  # a simulated one is the CPU here
_INTEGRAL = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
_NO_KWARGS: Mapping[str, Any] = {}
_OF_VALUES: Final = ("nuc", 2, -2)
"""Orders of a matrix norm, or of a condition number, that singular values give."""
_WITHOUT_VECTORS: Final[tuple[tuple[Any, str, str, tuple[Any, ...]], ...]] = (
    (torch.linalg, "eigvalsh", "", ()),
    (torch.linalg, "svdvals", "", ()),
    (torch.linalg, "cond", "p", (None, *_OF_VALUES)),
    (torch.linalg, "norm", "ord", _OF_VALUES),
    (torch.linalg, "matrix_norm", "ord", _OF_VALUES),
    (torch.functional, "norm", "p", ("nuc",)),
    (torch, "norm", "p", ("nuc",)),
)
"""Functions that need no vectors: for some orders (`linalg.norm` with `ord=2`, of a matrix), or for all."""


def install(patches: Patches) -> None:
    for name in (each.__name__ for each in _device_constructors()):  # cached by torch: asked before any is wrapped
        if name == "tensor" or name.startswith(("as", "sparse_")):  # `as_tensor` and `asarray`
            patches.wrap(torch, name, partial(ask_no_class, 0), leaves=True)
    for name in ("new", "new_tensor"):
        patches.wrap(torch.Tensor, name, partial(ask_no_class, 1), leaves=True)
    for kind in (torch._C.ScriptFunction, torch._C.ScriptMethod):
        patches.wrap(kind, "__call__", partial(ask_no_class, 0), leaves=True)
    patches.wrap(torch.nested, "nested_tensor", _ask_no_part, leaves=True)
    for owner, name, order, orders in _WITHOUT_VECTORS:
        patches.wrap(owner, name, partial(_leave_vectors_out, order, orders))
    patches.wrap(torch, "ctc_loss", _ctc_loss)
    patches.set(torch.Tensor, "__new__", _Constructor())


def ask_no_class(first: int, own: Call, *args: Any, **kwargs: Any) -> Any:
    """Let a function read tensors as C++ does, without asking the class of any from its `first` argument on."""
    if not is_compiling() and torch._C._len_torch_dispatch_stack() and not has_torch_function(args[:first]):
        kinds = [type(each) for each in (*args, *kwargs.values()) if is_tensor(each) and type(each) not in PLAIN]
        if any(kind.__torch_dispatch__ is torch._C._disabled_torch_dispatch_impl for kind in kinds):
            return torch._C._disabled_torch_function_impl(own, (), args, kwargs)
    return own(*args, **kwargs)


def _ask_no_part(own: Call, tensor_list: Any, **kwargs: Any) -> Any:
    return ask_no_class(0, lambda *_: own(tensor_list, **kwargs), *(tensor_list if type(tensor_list) is list else ()))


class _ValuesAlone(BesideCompile):
    """Computes no vectors; the second and third arguments of these operators are how, and whether to give vectors."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in _DECOMPOSITIONS:
            how = args[1] if len(args) > 1 else func._schema.arguments[1].default_value
            return func(args[0], how, False)
        return func(*args, **(kwargs or _NO_KWARGS))


_DECOMPOSITIONS = [
    take(f"ops.aten.{name}.default", "eager_paths", instead=None) for name in ("_linalg_eigh", "_linalg_svd")
]


def _leave_vectors_out(order: str, orders: tuple[Any, ...], function: Call, *args: Any, **kwargs: Any) -> Any:
    value = args[1] if len(args) > 1 else kwargs.get(order)
    is_one_of_these = not order or (type(value) in (int, float, str, type(None)) and value in orders)
    matrix = args[0] if args else kwargs.get("A", kwargs.get("input"))
    if not is_one_of_these or is_compiling() or not _would_leave_vectors_out(matrix):
        return function(*args, **kwargs)
    with on_top(_ValuesAlone()):  # type: ignore[no-untyped-call]
        return function(*args, **kwargs)


class _Constructor:
    """`torch.Tensor.__new__`, which torch.compile must find unchanged: it knows torch's own by identity."""

    _own: Final[Any] = torch._C.TensorBase.__new__

    def __get__(self, instance: object, owner: type | None = None) -> Callable[..., Any]:
        caller_name = sys._getframe(1).f_globals.get("__name__")
        is_torch = type(caller_name) is str and caller_name.partition(".")[0] == "torch"
        return self._own if is_torch else self._make

    def _make(self, kind: Any, *args: Any, **kwargs: Any) -> Any:
        if kind is torch.Tensor or not _is_class_of_tensors(kind) or not torch._C._len_torch_dispatch_stack():
            return ask_no_class(0, self._own, kind, *args, **kwargs)
        tensor = self._own(torch.Tensor, *args, **kwargs)
        with Quiet(), torch._C._DisableTorchDispatch():
            if tensor.requires_grad or tensor._is_view():
                return tensor.as_subclass(kind)
            return torch.Tensor._make_subclass(kind, tensor)


def _is_class_of_tensors(kind: object) -> bool:
    """Return whether an object is a class of tensors, without asking its metaclass."""
    return issubclass(type(kind), type) and torch.Tensor in type.__dict__["__mro__"].__get__(kind)


def _ctc_loss(
    own: Call, log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, *args: Any, **kwargs: Any
) -> Any:
    tensors = (log_probs, targets, input_lengths, target_lengths)
    if not is_compiling() and all(type(each) in PLAIN for each in tensors) and _reads_lengths(tensors, args, kwargs):
        lengths = (each.to("cpu", torch.int64).tolist() for each in (input_lengths, target_lengths))
        return own(log_probs, targets, *lengths, *args, **kwargs)
    return own(*tensors, *args, **kwargs)


def _reads_lengths(tensors: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return whether torch would read the lengths, were it not for our modes."""
    if torch._C._len_torch_function_stack() or not all_are_ours():
        return False
    if any(torch._C._functorch.is_functorch_wrapped_tensor(each) for each in tensors):
        return False
    if any(each.dtype not in _INTEGRAL or each.dim() != 1 for each in tensors[2:]):
        return False
    arguments = (*tensors, args[0] if args else kwargs.get("blank", 0))
    if _own_device(tensors[0]).type != "cuda":
        return True
    with torch._C._DisableTorchDispatch():
        return not torch._use_cudnn_ctc_loss(*arguments)


def _would_leave_vectors_out(matrix: Any) -> bool:
    """Return whether torch would compute values alone, were it not for our modes."""
    if not torch._C._len_torch_dispatch_stack() or type(matrix) not in PLAIN or not all_are_ours():
        return False
    if torch._C._functorch.peek_interpreter_stack() is not None or forward_ad._current_level >= 0:
        return False
    return not (torch.is_grad_enabled() and matrix.requires_grad)
