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
from contextlib import ExitStack
from typing import Any, Final

import torch

from devtrace.recording.columns.process_history import Past, Stamp, history
from devtrace.runtime.quiet import own_storage

NAME: Final = "_devtrace_stamp"
KEPT: Final = "_devtrace_kept"
UNSTAMPED: Final[Stamp] = (-1, {}, -1, None)
LONGEST_PAST: Final = 8


def install(undo: ExitStack) -> None:
    """Let every storage answer UNSTAMPED, so that reading a stamp needs neither default nor exception."""
    torch.UntypedStorage._devtrace_stamp = UNSTAMPED  # type: ignore[attr-defined]
    undo.callback(delattr, torch.UntypedStorage, NAME)


def new_epoch() -> int:
    return next(history.epochs)


def get(tensor: Any) -> Stamp:
    """Return the stamp of any tensor, UNSTAMPED if it has none."""
    storage = _storage(tensor)
    return _odd(tensor) if storage is None else getattr(storage, NAME, UNSTAMPED)


def put(tensor: Any, stamp: Stamp) -> None:
    storage = _storage(tensor)
    if storage is None:
        _put_odd(tensor, stamp)
    else:
        storage._devtrace_stamp = stamp


def _storage(tensor: Any) -> Any:
    """Return the storage that can carry a tensor's stamp; None where only the tensor itself can be remembered."""
    return own_storage(tensor) if storages_keep_attributes() else None


def put_kept(tensor: Any, tick: int) -> None:
    """Mark that a module kept a tensor at the tick of a move that did not take it; the first such move counts."""
    storage = _storage(tensor)
    if storage is not None and getattr(storage, KEPT, None) is None:
        setattr(storage, KEPT, tick)


def kept_at(tensor: Any) -> int | None:
    """Return the tick of the first move at which a module already kept a tensor as a plain attribute, if any."""
    tick: int | None = getattr(_storage(tensor), KEPT, None)
    return tick


def share_storage(one: Any, other: Any) -> bool:
    """Return whether two tensors are views of one storage, or the same tensor."""
    return one is other or ((storage := _storage(one)) is not None and storage is _storage(other))


def birth(site: int, past: Past | None = None) -> Stamp:
    """Return the stamp of what was born at a site while nothing was recorded.

    All tensors of a line may share it: nobody adds rows to a stamp that is no recording's. Thousands of parameters are
    then no thousands of objects, which would make Python collect garbage.
    """
    return -1, UNSTAMPED[1], site, past


def put_birth(tensor: Any, stamp: Stamp) -> Stamp:
    """Stamp a tensor that nothing is known of. Return the stamp that it then has."""
    known = get(tensor)
    if known is UNSTAMPED:
        put(tensor, stamp)
        return stamp
    return known


def _odd(tensor: Any) -> Stamp:
    reference, stamp = history.odd_stamps.get(id(tensor), (None, UNSTAMPED))
    return stamp if reference is not None and reference() is tensor else UNSTAMPED


def _put_odd(tensor: Any, stamp: Stamp) -> None:
    key, table = id(tensor), history.odd_stamps  # by a closure: a module's globals end before a process does
    table[key] = (weakref.ref(tensor, lambda _: table.pop(key, None)), stamp)


def shorten(past: Past | None, most: int = LONGEST_PAST) -> Past | None:
    """Cut a past to LONGEST_PAST: a tensor that is moved to and fro for ever must not grow."""
    if past is None or most == 0:
        return None
    return *past[:3], shorten(past[3], most - 1)


@functools.cache
def storages_keep_attributes() -> bool:
    """Return whether this torch hands out the same storage object again, with its attributes, after Python dropped it.

    Where it does not, each tensor has a stamp of its own, and views do not lead to their base.
    """
    with torch._C._DisableTorchDispatch(), torch._C.DisableTorchFunction():
        tensor = torch.empty(2, device="cpu")
        tensor.untyped_storage()._devtrace_probe = 1  # type: ignore[attr-defined]
        return getattr(tensor.view(1, 2).untyped_storage(), "_devtrace_probe", 0) == 1
