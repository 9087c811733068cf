"""Which tensor is which: a stamp on the storage's Python object, which all views of a storage share.

    storage._devtrace_stamp = (epoch, {view: row}, birth, past)

`epoch` names the owner of the rows: a recording, or a recording since its last folding. Two in five ops of a model's
step are views, so the key of a view is the cheapest to ask, its shape; a part of a storage adds its offset and strides
(`tensor_rows`). `Rows` adds to the dictionary as views appear; the rest of a stamp never changes. `birth` is the site
where the storage's content was born, `past` the chain of its copies. A stamp refers to no tensor, is not pickled,
copied or saved with one, and dies with its storage.
"""

import functools
import weakref
from contextlib import ExitStack, suppress
from typing import Any, Final

import torch

from devtrace.recording.columns.process_history import Past, Stamp, history
from devtrace.runtime.patches import SharedInstallation
from devtrace.runtime.quiet import storage_of

NAME: Final = "_devtrace_stamp"
KEPT: Final = "_devtrace_kept"
UNSTAMPED: Final[Stamp] = (-1, {}, -1, None)
LONGEST_PAST: Final = 8


_NO_STORAGE: Final = (NotImplementedError, RuntimeError)
"""What a tensor without a storage that keeps attributes raises."""


def _install(undo: ExitStack) -> None:
    torch.UntypedStorage._devtrace_stamp = UNSTAMPED  # type: ignore[attr-defined]
    undo.callback(delattr, torch.UntypedStorage, NAME)


DEFAULT: Final = SharedInstallation(_install)
"""While it is in use every storage answers UNSTAMPED, so that reading a stamp needs neither default nor exception."""


def new_epoch() -> int:
    return next(history.epochs)


def get(tensor: Any) -> Stamp:
    """Return the stamp of any tensor, UNSTAMPED if it has none."""
    if are_kept():
        try:
            stamp: Stamp = getattr(storage_of(tensor), NAME, UNSTAMPED)
        except _NO_STORAGE:
            return _odd(tensor)
        return stamp
    return _odd(tensor)


def put(tensor: Any, stamp: Stamp) -> None:
    if are_kept():
        try:
            storage_of(tensor)._devtrace_stamp = stamp
        except _NO_STORAGE:
            _put_odd(tensor, stamp)
    else:
        _put_odd(tensor, stamp)


def put_kept(tensor: Any, tick: int) -> None:
    """Mark that a module kept a tensor at the tick of a move that did not take it; the first such move counts."""
    if are_kept():
        with suppress(*_NO_STORAGE):
            storage = storage_of(tensor)
            if getattr(storage, KEPT, None) is None:
                setattr(storage, KEPT, tick)


def kept_at(tensor: Any) -> int | None:
    """Return the tick of the first move at which a module already kept a tensor as a plain attribute, if any."""
    with suppress(*_NO_STORAGE):
        tick: int | None = getattr(storage_of(tensor), KEPT, None)
        return tick
    return None


def share_storage(one: Any, other: Any) -> bool:
    """Return whether two tensors are views of one storage, or the same tensor."""
    with suppress(*_NO_STORAGE):
        return one is other or (are_kept() and storage_of(one) is storage_of(other))
    return False


def birth(site: int, past: Past | None = None) -> Stamp:
    """Return the stamp of what was born at a site while nothing was recorded.

    All tensors of a line may share it: nobody adds rows to a stamp that is no recording's. Thousands of parameters are
    then no thousands of objects, which would make Python collect garbage.
    """
    return -1, UNSTAMPED[1], site, past


def put_birth(tensor: Any, stamp: Stamp) -> Stamp:
    """Stamp a tensor that nothing is known of. Return the stamp that it then has."""
    try:
        storage = storage_of(tensor) if are_kept() else None
    except _NO_STORAGE:
        storage = None
    known: Stamp = _odd(tensor) if storage is None else getattr(storage, NAME, UNSTAMPED)
    if known is not UNSTAMPED:
        return known
    if storage is None:
        _put_odd(tensor, stamp)
    else:
        storage._devtrace_stamp = stamp
    return stamp


def _odd(tensor: Any) -> Stamp:
    reference, stamp = history.odd_stamps.get(id(tensor), (None, UNSTAMPED))
    return stamp if reference is not None and reference() is tensor else UNSTAMPED


def _put_odd(tensor: Any, stamp: Stamp) -> None:
    key, table = id(tensor), history.odd_stamps  # by a closure: a module's globals end before a process does
    table[key] = (weakref.ref(tensor, lambda _: table.pop(key, None)), stamp)


def shorten(past: Past | None, left: int = LONGEST_PAST) -> Past | None:
    """Cut a past to LONGEST_PAST: a tensor that is moved to and fro for ever must not grow."""
    if past is None or left == 0:
        return None
    return past[0], past[1], shorten(past[2], left - 1)


@functools.cache
def are_kept() -> bool:
    """Return whether this torch hands out the same storage object again, with its attributes, after Python dropped it.

    Where it does not, each tensor has a stamp of its own, and views do not lead to their base.
    """
    with torch._C._DisableTorchDispatch(), torch._C.DisableTorchFunction():
        tensor = torch.empty(2, device="cpu")
        tensor.untyped_storage()._devtrace_probe = 1  # type: ignore[attr-defined]
        return getattr(tensor.view(1, 2).untyped_storage(), "_devtrace_probe", 0) == 1
