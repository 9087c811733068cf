"""Where a simulated tensor lives: a tag on its storage.

The storage's Python object lives exactly as long as the storage, is the same for every view, `detach` and `.data`, and
takes an attribute (54 ns to read; a dictionary keyed by address would meet reused addresses). While a simulation runs,
the class attribute is the tag of the host, so that reading an untagged storage needs no default and no exception.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch

TAG = "_devtrace_tag"


class Home:
    """One simulated device, the host, or the floating home, with how many storages are alive on it.

    `allocated` and `peak` are bytes of storages made since the simulation began: a storage that outlives its simulation
    gives nothing back in the next, however long the program, or garbage that waits to be collected, holds it.
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
        """A simulation begins."""
        self.era += 1
        self.allocated = self.peak = 0
        self.generator = None

    def take(self, nbytes: int) -> int:
        """A storage comes to live here; gives the era in which it did."""
        self.live += 1
        self.allocated += nbytes
        if self.allocated > self.peak:
            self.peak = self.allocated
        return self.era

    def give(self, nbytes: int, era: int) -> None:
        """A storage that came in an era dies or moves out."""
        self.live -= 1
        if era == self.era:
            self.allocated -= nbytes

    def __repr__(self) -> str:
        return f"Home({self.device})"


class Tag:
    """Ties one storage to its home and gives the bytes back when the storage dies."""

    __slots__ = ("era", "hint", "home", "nbytes", "pinned")

    def __init__(self, home: Home, nbytes: int) -> None:
        self.home = home
        self.nbytes = nbytes
        self.pinned = False
        self.hint: Home | None = None
        self.era = home.take(nbytes)

    def __del__(self) -> None:
        self.home.give(self.nbytes, self.era)

    def move(self, home: Home) -> None:
        """The storage turns out to live somewhere else than first thought."""
        self.home.give(self.nbytes, self.era)
        self.home, self.hint = home, None
        self.era = home.take(self.nbytes)


HOST = Home(None, -1)
# C++ made it for the device of a tensor that C++ takes for a CPU tensor; the first tensor it meets gives it a home.
FLOATING = Home(None, -2)
HOST_TAG = Tag(HOST, 0)
# The devices of the simulation that runs.
SIMULATED: dict[torch.device, Home] = {}


def parts(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    """The plain tensors that hold the data of one without a storage of its own: sparse, or wrapped by torch.func."""
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
    """The tag of a tensor of any layout; the host's for one that cannot have any."""
    try:
        found: Tag = tensor.untyped_storage()._devtrace_tag  # type: ignore[attr-defined]
        return found
    except (NotImplementedError, RuntimeError):
        with torch._C._DisableTorchDispatch():
            return next((tag_of(part) for part in parts(tensor)), HOST_TAG)


def claim(tensor: Any, home: Home) -> None:
    """A tensor just made belongs to `home`, unless its storage already has one (an alias)."""
    try:
        storage = tensor.untyped_storage()
    except (NotImplementedError, RuntimeError):
        with torch._C._DisableTorchDispatch():
            for part in parts(tensor):
                claim(part, home)
        return
    if storage._devtrace_tag is HOST_TAG:
        storage._devtrace_tag = Tag(home, storage.nbytes())


def mark_pinned(storage: torch.UntypedStorage) -> None:
    """Page-locked host memory."""
    tag = Tag(HOST, 0)
    tag.pinned = True
    setattr(storage, TAG, tag)


def claim_all(values: Any, home: Home) -> None:
    """`claim` for what an operator returned: a tensor, a list or tuple of them, or neither."""
    if isinstance(values, torch.Tensor):
        claim(values, home)
    elif isinstance(values, (list, tuple)):
        for value in values:
            claim_all(value, home)


def tensors_in(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    """The tensors among the arguments of an operator, lists included."""
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors_in(value)
