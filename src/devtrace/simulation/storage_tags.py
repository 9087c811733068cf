"""A tag on each storage of a simulated device: which device owns it.

The storage's Python object exists exactly as long as the storage and is the same for every view, `detach` and `.data`.
It takes an attribute (54 ns to read; a dictionary keyed by address would find reused addresses). While a simulation
runs, the class attribute is the tag of the host: reading an untagged storage needs no default and no exception.
"""

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from devtrace.runtime.observers import observers
from devtrace.runtime.quiet import PLAIN, Quiet, function_modes
from devtrace.simulation.allocation.shares import SimulatedDevice, count_in

TAG = "_devtrace_tag"


class Tag:
    """Ties one storage to the device that owns it."""

    __slots__ = ("__weakref__", "_share", "hint", "owner", "pinned")

    def __init__(self, owner: SimulatedDevice, nbytes: int, storage: torch.UntypedStorage | None = None) -> None:
        self.owner = owner
        self.pinned = False
        self.hint: SimulatedDevice | None = None
        self._share = count_in(self, owner, nbytes, storage)

    def move(self, owner: SimulatedDevice) -> None:
        """Give the storage another owner."""
        self._share.take(owner, self._share.nbytes)
        self.owner, self.hint = owner, None

    def resize(self, nbytes: int) -> None:
        """Count the new size that torch has given the storage; the host's memory is not counted."""
        if self.owner is not HOST and self._share.nbytes != nbytes:
            self._share.take(self.owner, nbytes)


HOST = SimulatedDevice(None, -1)
# Owner of a tensor that C++ made on the CPU, where CUDA would use a device: it joins the first that it is used with.
FLOATING = SimulatedDevice(None, -2)
HOST_TAG = Tag(HOST, 0)


def parts(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    """Yield the plain tensors below one without a storage of its own: sparse, or wrapped by torch.func."""
    if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        yield torch._C._functorch.get_unwrapped(tensor)
    elif torch._C._functorch.is_legacy_batchedtensor(tensor):
        yield _without_batches(tensor)
    elif tensor.layout is torch.sparse_coo:
        yield from (tensor._values(), tensor._indices())
    elif tensor.layout in _COMPRESSED:
        compressed = _COMPRESSED[tensor.layout]
        yield tensor.values()
        yield from (getattr(tensor, name)() for name in compressed)


def _without_batches(tensor: torch.Tensor) -> torch.Tensor:
    """Return what autograd's own vmap has wrapped (`is_grads_batched`), level by level from the outermost, 1."""
    for level in itertools.count(1):
        if not torch._C._functorch.is_legacy_batchedtensor(tensor):
            break
        tensor = torch._remove_batch_dim(tensor, level, 1, 0)
    return tensor


_COMPRESSED = {
    torch.sparse_csr: ("crow_indices", "col_indices"),
    torch.sparse_bsr: ("crow_indices", "col_indices"),
    torch.sparse_csc: ("ccol_indices", "row_indices"),
    torch.sparse_bsc: ("ccol_indices", "row_indices"),
}


def tag_of(tensor: Any) -> Tag:
    """Return the tag of a tensor of any layout; the host's for one that cannot have any, and for a number of C++'s."""
    if function_modes() or type(tensor) not in PLAIN:
        if not isinstance(tensor, torch.Tensor):
            return HOST_TAG
        with Quiet():
            return _tag(tensor)
    return _tag(tensor)


def _tag(tensor: torch.Tensor) -> Tag:
    try:
        tag: Tag = tensor.untyped_storage()._devtrace_tag  # type: ignore[attr-defined]
        return tag
    except RuntimeError:  # it has several storages
        with torch._C._DisableTorchDispatch():
            return next((tag_of(part) for part in parts(tensor)), HOST_TAG)


def type_name(tensor: torch.Tensor) -> str:
    """`torch.cuda.FloatTensor`: the legacy name of a tensor's type."""
    plain: str = torch._C.TensorBase.type(tensor)
    tag = tag_of(tensor)
    return plain if (tag.hint or tag.owner).device is None else plain.replace("torch.", "torch.cuda.", 1)


def claim(tensor: Any, owner: SimulatedDevice) -> None:
    """Tag a new tensor as `owner`'s, unless its storage already has a tag (an alias)."""
    try:
        storage = tensor.untyped_storage()
    except RuntimeError:
        with torch._C._DisableTorchDispatch():
            for part in parts(tensor):
                claim(part, owner)
        return
    tag = storage._devtrace_tag
    if tag is HOST_TAG:  # as of a new storage
        storage._devtrace_tag = Tag(owner, storage.nbytes(), storage)
    else:
        tag.resize(storage.nbytes())  # `out=` may have grown


def anchor_floating(tensor: torch.Tensor, owner: SimulatedDevice) -> None:
    """Give a floating tensor to `owner`, and say so to a recording that saw it made; any other stays where it is."""
    tag = tag_of(tensor)
    if tag.owner is FLOATING:
        hint = tag.hint
        tag.move(owner)
        if hint is not owner:
            for observer in observers:
                observer.settle_device(tensor)


def claim_all(values: Any, owner: SimulatedDevice) -> None:
    """`claim` for what an operator returned: a tensor, a list or tuple of them, or neither. The host claims nothing."""
    for tensor in tensors_in((values,) if owner is not HOST else ()):
        claim(tensor, owner)


def anchor_all(values: Any, owner: SimulatedDevice) -> None:
    for tensor in tensors_in((values,)):
        anchor_floating(tensor, owner)


def mark_pinned(storage: torch.UntypedStorage) -> None:
    """Mark a storage as page-locked memory of the host."""
    tag = Tag(HOST, 0)
    tag.pinned = True
    setattr(storage, TAG, tag)


def tensors_in(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    """Yield the tensors among the arguments of an operator, lists included."""
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors_in(value)


def written_by(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Any]:
    """Yield the arguments of a call that the operator writes to, by its schema."""
    for spec, value in given_to(func, args, kwargs):
        if spec.alias_info is not None and spec.alias_info.is_write:
            yield value


def given_to(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    """Yield each argument that an operator declares with its value in this call, or None where it has none."""
    for position, spec in enumerate(func._schema.arguments):
        yield spec, args[position] if position < len(args) else kwargs.get(spec.name)
