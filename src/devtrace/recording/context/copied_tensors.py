"""A deep copy of a tensor is born where it was made, also in a cell that is not traced: the copy that an EMA keeps."""

import functools
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch.compiler import is_compiling

from devtrace.recording.columns import stamps
from devtrace.recording.context.happenings import site_of
from devtrace.runtime.patches import Patches
from devtrace.runtime.quiet import Quiet, is_tensor
from devtrace.runtime.watching import BIRTHS


def install(patches: Patches) -> None:
    for kind in (torch.Tensor, torch.nn.Parameter):
        patches.set(kind, "__deepcopy__", _noted(kind.__deepcopy__))


def _noted(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def __deepcopy__(self: Any, memo: Any) -> Any:  # noqa: N807
        made = original(self, memo)
        if not is_compiling():
            with BIRTHS, Quiet():
                if is_tensor(made) and made is not self:
                    stamps.put_birth(made, stamps.birth(site_of(sys._getframe(1))))
        return made

    return __deepcopy__
