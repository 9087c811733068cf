"""Singular values and eigenvalues alone: a dispatch mode makes torch compute the vectors too, by another algorithm.

torch's C++ leaves the vectors out only where no mode is on (`isTensorSubclassLike`), so values come out an ulp from
those without a mode. Where Python asks for values only, the flag is set back.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import torch

from devtrace.runtime.patches import Patches

_NAMES = ("eigvalsh", "svdvals", "cond", "norm", "matrix_norm")


class _Asked(threading.local):
    depth = 0


_asked = _Asked()


def install(patches: Patches) -> None:
    """Note each function of `torch.linalg` that needs no vectors while it runs."""
    for name in _NAMES:
        patches.set(torch.linalg, name, _noted(getattr(torch.linalg, name)))
    patches.set(torch.functional, "norm", _noted(torch.functional.norm))
    patches.set(torch, "norm", torch.functional.norm)


def _noted(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def noted(*args: Any, **kwargs: Any) -> Any:
        _asked.depth += 1
        try:
            return function(*args, **kwargs)
        finally:
            _asked.depth -= 1

    return noted


def alone(matrix: torch.Tensor) -> bool:
    """Return whether the caller asked for values only."""
    return _asked.depth > 0 and not (torch.is_grad_enabled() and matrix.requires_grad)
