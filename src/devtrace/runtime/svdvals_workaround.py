"""Singular values and eigenvalues alone: a dispatch mode makes torch compute the vectors too, by another algorithm.

torch's C++ leaves the vectors out only where no mode is on (`isTensorSubclassLike`), so values come out an ulp from
those without a mode. Where Python asks for values only, a mode above ours sets the flag back.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any, Final

import torch
from torch.autograd import forward_ad
from torch.compiler import is_compiling

from devtrace.runtime.mode_stack import BesideCompile, all_are_ours, on_top
from devtrace.runtime.patches import Patches
from devtrace.runtime.quiet import PLAIN
from devtrace.runtime.torch_names import take

_NO_KWARGS: Mapping[str, Any] = {}
_OF_VALUES: Final = ("nuc", 2, -2)
"""Orders of a matrix norm, or of a condition number, that singular values give."""


def install(patches: Patches) -> None:
    """Wrap each function that needs no vectors for some orders: `linalg.norm` for `ord=2`, as a matrix."""
    for name in ("eigvalsh", "svdvals"):
        patches.set(torch.linalg, name, _without_vectors(getattr(torch.linalg, name)))
    patches.set(torch.linalg, "cond", _without_vectors(torch.linalg.cond, "p", (None, *_OF_VALUES)))
    for name in ("norm", "matrix_norm"):
        patches.set(torch.linalg, name, _without_vectors(getattr(torch.linalg, name), "ord", _OF_VALUES))
    norm = _without_vectors(torch.functional.norm, "p", ("nuc",))
    patches.set(torch.functional, "norm", norm)
    patches.set(torch, "norm", norm)


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


def _without_vectors(
    function: Callable[..., Any], order: str | None = None, orders: tuple[Any, ...] = ()
) -> Callable[..., Any]:
    @functools.wraps(function)
    def alone(*args: Any, **kwargs: Any) -> Any:
        asked = order is None or _is_among(args[1] if len(args) > 1 else kwargs.get(order), orders)
        matrix = args[0] if args else kwargs.get("A", kwargs.get("input"))
        if not asked or is_compiling() or not _would_leave_vectors_out(matrix):
            return function(*args, **kwargs)
        with on_top(_ValuesAlone()):  # type: ignore[no-untyped-call]
            return function(*args, **kwargs)

    return alone


def _is_among(given: Any, orders: tuple[Any, ...]) -> bool:
    return type(given) in (int, float, str, type(None)) and given in orders


def _would_leave_vectors_out(matrix: Any) -> bool:
    """Return whether torch would compute values alone, were it not for our modes."""
    if not torch._C._len_torch_dispatch_stack() or type(matrix) not in PLAIN or not all_are_ours():
        return False
    if torch._C._functorch.peek_interpreter_stack() is not None or forward_ad._current_level >= 0:
        return False
    return not (torch.is_grad_enabled() and matrix.requires_grad)
