"""Which tensor is which: a stamp on the storage's Python object, which all views of a storage share.

    storage._devtrace_stamp = (epoch, {view: row}, birth, past)

`epoch` tells whose rows these are: a recording's, or of a recording since its last folding. Two in five ops of a
model's step are views, so a view is told by what is cheapest to ask, its shape; a part of a storage also by its place
(`rows`). `birth` is the site where the storage's content was born, `past` the chain of what it was copied from: (site,
device, earlier past), nearest first. A stamp holds no tensor, is not pickled, copied or saved with one, and dies with
its storage.
"""

from __future__ import annotations

import functools
import itertools
import weakref
from typing import Any, Final

import torch

Past = tuple[int, torch.device, Any]
Stamp = tuple[int, dict[Any, int], int, Past | None]

NAME: Final = "_devtrace_stamp"
UNSTAMPED: Final[Stamp] = (-1, {}, -1, None)
LONGEST_PAST: Final = 8

_epochs = itertools.count()
_users = 0
# Tensors whose storage takes no attribute (sparse, mkldnn), or all of them where the self-test fails.
_odd: dict[int, tuple[weakref.ref[Any], Stamp]] = {}


class _NoStorageError(RuntimeError):
    """This tensor's storage keeps no attribute."""


def _storage(tensor: Any) -> Any:
    if not _kept():
        raise _NoStorageError
    return tensor.untyped_storage()


def new_epoch() -> int:
    return next(_epochs)


def begin() -> None:
    """From here on every storage answers UNSTAMPED, so that reading a stamp needs neither default nor exception."""
    global _users
    _users += 1
    torch.UntypedStorage._devtrace_stamp = UNSTAMPED  # type: ignore[attr-defined]


def end() -> None:
    global _users
    _users -= 1
    if not _users:
        del torch.UntypedStorage._devtrace_stamp  # type: ignore[attr-defined]


def get(tensor: Any) -> Stamp:
    """The stamp of any tensor, UNSTAMPED if it has none."""
    try:
        stamp: Stamp = getattr(_storage(tensor), NAME, UNSTAMPED)
    except (NotImplementedError, RuntimeError):
        held = _odd.get(id(tensor))
        return held[1] if held and held[0]() is tensor else UNSTAMPED
    return stamp


def put(tensor: Any, stamp: Stamp) -> None:
    try:
        _storage(tensor)._devtrace_stamp = stamp
    except (NotImplementedError, RuntimeError):
        key = id(tensor)
        _odd[key] = (weakref.ref(tensor, lambda _: _odd.pop(key, None)), stamp)


def shorten(past: Past | None, left: int = LONGEST_PAST) -> Past | None:
    """The same past, no longer than LONGEST_PAST: a tensor moved to and fro for ever must not grow."""
    if past is None or left == 0:
        return None
    return past[0], past[1], shorten(past[2], left - 1)


@functools.cache
def _kept() -> bool:
    """Whether this torch hands out the same storage object again, with its attributes, after Python has dropped it.
    Where it does not, tensors are told apart one by one, and views not led back to what they are views of.
    """
    tensor = torch.empty(2)
    tensor.untyped_storage()._devtrace_probe = 1  # type: ignore[attr-defined]
    return getattr(tensor.view(1, 2).untyped_storage(), "_devtrace_probe", 0) == 1
