"""What torch says of operators where a program asks: that the CPU waits, or that results do not repeat.

`torch.cuda.set_sync_debug_mode` and `torch.use_deterministic_algorithms`: `cuda_on_request.tsv` has the operators.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from devtrace.runtime.tables import rows_of
from devtrace.simulation.storage_tags import FLOATING, HOST, tag_of, tensors_in

_REPORT = (
    "file an issue at https://github.com/pytorch/pytorch/issues to help us prioritize adding deterministic support"
)


class KernelRow(NamedTuple):
    """A row of the table: a kernel that gives no result twice, or none where the CPU waits; and when."""

    kernel: str
    condition: str


class Waits:
    """Keeps torch's sync debug mode: 1 warns, 2 raises. `are_open`: no mode has to see the read of a value."""

    level = 0
    are_open = True


WAITS = Waits()


@functools.cache
def table() -> dict[str, KernelRow]:
    """Operator without overload -> its row."""
    rows = rows_of("simulation/cuda_on_request.tsv")
    return {name: KernelRow(kernel, condition) for names, kernel, condition in rows for name in names.split()}


def show_waits(level: int) -> None:
    """Keep what `set_sync_debug_mode` was given; handlers are to be made anew then."""
    WAITS.level, WAITS.are_open = level, not level


def asking(func: Any, handler: Callable[..., Any]) -> Callable[..., Any]:
    """Put what is said of an operator before its handler; of a wait, where that was asked for by now."""
    row = table().get(func._schema.name.removeprefix("aten::").rstrip("_"))
    if row is None or not (row.kernel or WAITS.level):
        return handler

    def checked(mode: Any, func: Any, args: Any, kwargs: Any) -> Any:
        if row.kernel and torch._C._get_deterministic_algorithms() and _applies(row, func, args, kwargs):
            not_repeated(row.kernel)
        elif not row.kernel and _applies(row, func, args, kwargs):
            waited()
        return handler(mode, func, args, kwargs)

    return checked


def _applies(row: KernelRow, func: Any, args: Any, kwargs: Any) -> bool:
    given = kwargs | dict(zip((spec.name for spec in func._schema.arguments), args, strict=False))
    hosts = [tag_of(each).owner is HOST for each in tensors_in(given.values()) if tag_of(each).owner is not FLOATING]
    if row.condition == "blocking":
        target = given.get("device")
        hosts += [target.type == "cpu"] if target is not None and (target.type, target.index) != ("cpu", None) else []
        return len(set(hosts)) > 1 and not given.get("non_blocking")
    if all(hosts):
        return False
    if row.condition == "masks":
        if any(tag_of(each).owner is HOST for each in tensors_in(args[1:2])):
            return True  # an index of the CPU is copied
        masks = [each for each in tensors_in(args[1:2]) if each.dtype in (torch.bool, torch.uint8)]
        return bool(masks) and not (len(masks) == 1 and _is_filled(args))
    name, _, value = row.condition.partition("=")
    if name.startswith("!"):
        return given.get(name[1:]) is None
    return not name or (str(given.get(name)) == value if value else given.get(name) is not None)


def _is_filled(args: Any) -> bool:
    """Return whether `x[mask] = 0.5` counts nothing: for a number of the CPU torch fills what the mask picks."""
    others = sum(each is not None for each in args[1])
    value = args[2] if len(args) > 2 and not any(args[3:4]) else None
    is_number = isinstance(value, torch.Tensor) and value.numel() == 1 and tag_of(value).owner in (HOST, FLOATING)
    return others == 1 and is_number


def waited() -> None:
    """Say in torch's words that the CPU waits, where a program asks."""
    if WAITS.level:
        _warn("called a synchronizing CUDA operation", raises=WAITS.level > 1)


def not_repeated(kernel: str) -> None:
    """Say in torch's words that a kernel of CUDA's does not give the same result each time."""
    raises = not torch._C._get_deterministic_algorithms_warn_only()
    words = (
        f"{kernel} does not have a deterministic implementation, but you set 'torch.use_deterministic_algorithms(True"
    )
    words += (
        ")'. You can turn off determinism just for this operation, or you can use the 'warn_only=True' option, "
        f"if that's acceptable for your application. You can also {_REPORT} for this operation."
        if raises
        else f", warn_only=True)'. You can {_REPORT} for this operation."
    )
    _warn(words, raises=raises)


def _warn(words: str, *, raises: bool) -> None:
    if raises:
        raise RuntimeError(words)
    warnings.warn(words, stacklevel=2)
