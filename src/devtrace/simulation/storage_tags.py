"""A tag on each storage of a simulated device: which device owns it.

The storage's Python object exists exactly as long as the storage and is the same for every view, `detach` and `.data`.
It takes an attribute (54 ns to read; a dictionary keyed by address would find reused addresses). While a simulation
runs, the class attribute is the tag of the host: reading an untagged storage needs no default and no exception.
"""

import itertools
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from devtrace.runtime.settling import has_settled

TAG = "_devtrace_tag"


class Memory:
    """Memory of the simulation that runs: one for all devices in the reference of a proof, which refuses no mix."""

    is_one = False


MEMORY = Memory()


class SimulatedDevice:
    """One simulated device, or HOST, or FLOATING, with how many storages are alive on it.

    `allocated` and `peak` are bytes of storages made since the simulation began. A storage that outlives its simulation
    gives nothing back in the next, however late it is freed.
    """

    __slots__ = ("_allocated", "_live", "device", "era", "generator", "index", "peak")

    def __init__(self, device: torch.device | None, index: int) -> None:
        self.device = device
        self.index = index
        self._allocated = 0
        self._live = 0
        self.peak = 0
        self.era = 0
        self.generator: Any = None

    @property
    def allocated(self) -> int:
        _count_out_the_freed()
        return self._allocated

    @property
    def live(self) -> int:
        _count_out_the_freed()
        return self._live

    def begin(self) -> None:
        _count_out_the_freed()
        self.era += 1
        self._allocated = self.peak = 0
        self.generator = None

    def take(self, nbytes: int) -> int:
        """Count a new storage; return the era in which it came."""
        _count_out_the_freed()
        self._live += 1
        self._allocated += nbytes
        if self._allocated > self.peak:
            self.peak = self._allocated
        return self.era

    def give(self, nbytes: int, era: int) -> None:
        """Count a storage out that came in `era`: freed, or moved to another owner."""
        self._live -= 1
        if era == self.era:
            self._allocated -= nbytes

    def __repr__(self) -> str:
        return f"SimulatedDevice({self.device})"


class Tag:
    """Ties one storage to the device that owns it."""

    __slots__ = ("__weakref__", "_share", "hint", "owner", "pinned")

    def __init__(self, owner: SimulatedDevice, nbytes: int) -> None:
        self.owner = owner
        self.pinned = False
        self.hint: SimulatedDevice | None = None
        self._share = share = _Share(self, _freed.append)
        share.owner, share.nbytes, share.era = owner, nbytes, owner.take(nbytes)
        _alive[id(share)] = share

    def move(self, owner: SimulatedDevice) -> None:
        """Give the storage another owner."""
        share = self._share
        share.owner.give(share.nbytes, share.era)
        self.owner, self.hint = owner, None
        share.owner, share.era = owner, owner.take(share.nbytes)


class _Share(weakref.ref[Tag]):
    """Count of a storage among those of its device, given back when the tag has died with it.

    Python drops a KeyboardInterrupt that arrives while a finalizer runs, and training frees storages all the time: with
    a `__del__` one of fifty interrupts was lost. So what runs then is `list.append`, in C, where none can arrive.
    """

    __slots__ = ("era", "nbytes", "owner")

    owner: SimulatedDevice
    nbytes: int
    era: int


_alive: dict[int, _Share] = {}
_freed: list[Any] = []


def _count_out_the_freed() -> None:
    while _freed:
        try:
            share = _freed.pop()
        except IndexError:  # another thread was faster
            return
        if _alive.pop(id(share), None) is not None:  # else an interrupt came before it was counted in
            share.owner.give(share.nbytes, share.era)


HOST = SimulatedDevice(None, -1)
# Made by C++ for the device of a tensor that C++ takes for a CPU tensor: it joins the first that it is used with.
FLOATING = SimulatedDevice(None, -2)
HOST_TAG = Tag(HOST, 0)
# The devices of the simulation that runs.
SIMULATED: dict[torch.device, SimulatedDevice] = {}


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


def tag_of(tensor: torch.Tensor) -> Tag:
    """Return the tag of a tensor of any layout; the host's for one that cannot have any."""
    try:
        found: Tag = tensor.untyped_storage()._devtrace_tag  # type: ignore[attr-defined]
        return found
    except (RuntimeError, ValueError):
        with torch._C.DisableTorchFunctionSubclass():
            return _tag_below(tensor)


def _tag_below(tensor: torch.Tensor) -> Tag:
    """Return the tag of a tensor whose class refuses the question (a lazy parameter), or that has several storages."""
    try:
        found: Tag = tensor.untyped_storage()._devtrace_tag  # type: ignore[attr-defined]
        return found
    except RuntimeError:
        with torch._C._DisableTorchDispatch():
            return next((tag_of(part) for part in parts(tensor)), HOST_TAG)


def claim(tensor: Any, owner: SimulatedDevice) -> None:
    """Tag a new tensor as `owner`'s, unless its storage already has a tag (an alias)."""
    try:
        storage = tensor.untyped_storage()
    except RuntimeError:
        with torch._C._DisableTorchDispatch():
            for part in parts(tensor):
                claim(part, owner)
        return
    if storage._devtrace_tag is HOST_TAG:
        storage._devtrace_tag = Tag(owner, storage.nbytes())


def anchor_floating(tensor: torch.Tensor, owner: SimulatedDevice) -> None:
    """Give a floating tensor to `owner`, and say so to a recording that saw it made; any other stays where it is."""
    tag = tag_of(tensor)
    if tag.owner is FLOATING:
        shown = tag.hint
        tag.move(owner)
        if shown is not owner:
            has_settled(tensor)


def mark_pinned(storage: torch.UntypedStorage) -> None:
    """Page-locked host memory."""
    tag = Tag(HOST, 0)
    tag.pinned = True
    setattr(storage, TAG, tag)


def claim_all(values: Any, owner: SimulatedDevice) -> None:
    """`claim` for what an operator returned: a tensor, a list or tuple of them, or neither."""
    if isinstance(values, torch.Tensor):
        claim(values, owner)
    elif isinstance(values, (list, tuple)):
        for value in values:
            claim_all(value, owner)


def tensors_in(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    """Yield the tensors among the arguments of an operator, lists included."""
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors_in(value)
