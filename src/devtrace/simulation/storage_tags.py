"""A tag on each storage of a simulated device: which device owns it.

The storage's Python object exists exactly as long as the storage and is the same for every view, `detach` and `.data`.
It takes an attribute (54 ns to read; a dictionary keyed by address would find reused addresses). While a simulation
runs, the class attribute is the tag of the host: reading an untagged storage needs no default and no exception.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch

TAG = "_devtrace_tag"


class SimulatedDevice:
    """One simulated device, or HOST, or FLOATING, with how many storages are alive on it.

    `allocated` and `peak` are bytes of storages made since the simulation began. A storage that outlives its simulation
    gives nothing back in the next, however late it is freed.
    """

    __slots__ = ("allocated", "device", "era", "generator", "index", "live", "peak")

    def __init__(self, device: torch.device | None, index: int) -> None:
        self.device = device
        self.index = index
        self.allocated = 0
        self.live = 0
        self.peak = 0
        self.era = 0
        self.generator: Any = None

    def begin(self) -> None:
        self.era += 1
        self.allocated = self.peak = 0
        self.generator = None

    def take(self, nbytes: int) -> int:
        """Count a new storage; return the era in which it came."""
        self.live += 1
        self.allocated += nbytes
        if self.allocated > self.peak:
            self.peak = self.allocated
        return self.era

    def give(self, nbytes: int, era: int) -> None:
        """Count a storage out that came in `era`: freed, or moved to another owner."""
        self.live -= 1
        if era == self.era:
            self.allocated -= nbytes

    def __repr__(self) -> str:
        return f"SimulatedDevice({self.device})"


class Tag:
    """Ties one storage to the device that owns it, and gives the bytes back when the storage is freed."""

    __slots__ = ("era", "hint", "nbytes", "owner", "pinned")

    def __init__(self, owner: SimulatedDevice, nbytes: int) -> None:
        self.owner = owner
        self.nbytes = nbytes
        self.pinned = False
        self.hint: SimulatedDevice | None = None
        self.era = owner.take(nbytes)

    def __del__(self) -> None:
        self.owner.give(self.nbytes, self.era)

    def move(self, owner: SimulatedDevice) -> None:
        """Give the storage another owner."""
        self.owner.give(self.nbytes, self.era)
        self.owner, self.hint = owner, None
        self.era = owner.take(self.nbytes)


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
    elif tensor.layout is torch.sparse_coo:
        yield from (tensor._values(), tensor._indices())
    elif tensor.layout in _COMPRESSED:
        compressed = _COMPRESSED[tensor.layout]
        yield tensor.values()
        yield from (getattr(tensor, name)() for name in compressed)


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
