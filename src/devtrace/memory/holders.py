"""Who holds a device's memory between two cells of a notebook: sums by name, in small steps for the kernel's idle time.

It makes next to no objects: thousands that last for a walk are a full collection of the garbage.
"""

from collections import Counter
from collections.abc import Generator, Mapping
from itertools import chain
from typing import Any, Final, NamedTuple

import torch

from devtrace.memory.census import HISTORY, WORTH, Census, Root
from devtrace.memory.observer import of_device
from devtrace.memory.shortage import NOBODY
from devtrace.runtime.observers import Alive
from devtrace.runtime.quiet import Quiet, device_of, own_storage
from devtrace.source.object_walk import may_lead

_OBJECTS_AT_ONCE: Final = 16  # that are looked at in one step
_BLOCKS_AT_ONCE: Final = 1_000
_END: Final = object()


class Holders(NamedTuple):
    """A device's memory, and who holds how much of it: bytes by kind and name, the largest first."""

    alive: Alive
    largest: list[tuple[tuple[str, str], int]]


class _Sums(Census):
    """A census of all devices that keeps sums alone."""

    def __init__(self, blocks: dict[int, int]) -> None:
        super().__init__(Alive(None, 0, 0, 0, 0, ()), set())
        self.sums: dict[str, Counter[tuple[str, str]]] = {}
        self._counted: set[int] = set()
        self._blocks = blocks

    def claim(self, tensor: Any, kind: str, name: str, contained: int = 1) -> None:
        storage = own_storage(tensor)
        key = storage._cdata if storage is not None else 0
        if key and key not in self._counted:
            self._counted.add(key)
            size = self._blocks.get(key) or (storage.nbytes() + 511) & -512
            self.sums.setdefault(str(device_of(tensor)), Counter())[kind, name] += size


def holders_by_name(names: Mapping[str, Any]) -> Generator[None, None, dict[str, Holders]]:
    """Return the memory of each accelerator that has any."""
    devices = range(torch.cuda.device_count() if torch.cuda.is_initialized() else 0)
    in_use = [alive for index in devices if (alive := of_device(torch.device("cuda", index))) is not None]
    if not in_use:
        return {}
    blocks: dict[int, int] = {}
    for count, (storage, size) in enumerate(chain.from_iterable(alive.storages for alive in in_use)):
        blocks[storage._cdata] = size
        del storage  # a program may let go of it meanwhile
        if count % _BLOCKS_AT_ONCE == 0:
            yield
    census = _Sums(blocks)
    roots = [Root(name, value, NOBODY) for name, value in list(names.items()) if may_lead(value)]
    users = [root for root in roots if root.name not in HISTORY]
    steps = census.claim_from_roots(users, [root for root in roots if root.name in HISTORY], [])
    while True:
        with Quiet(), torch._C._DisableTorchDispatch():
            if any(next(steps, _END) is _END for _ in range(_OBJECTS_AT_ONCE)):
                break
        yield
    return {str(alive.device): _holders(alive, census.sums.get(str(alive.device), Counter())) for alive in in_use}


def _holders(alive: Alive, sums: Counter[tuple[str, str]]) -> Holders:
    """Add what no name leads to: a worker's tensors, or what an error's frames have."""
    rest = alive.allocated - sums.total()
    if rest > WORTH * alive.allocated:
        sums["temporary", ""] += rest
    return Holders(alive, sums.most_common())
