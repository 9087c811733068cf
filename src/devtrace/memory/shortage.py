"""What was alive on a device where an allocation failed, as recording hands it to diagnosis: rows, no tensors."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from devtrace.trace.ids import OpId, SiteId, TensorId

Key = tuple[str, tuple[str, str, int]]
"""A name and its scope."""
NOBODY: Final = ("", "", 0)


class Holding(NamedTuple):
    """A storage: how it is held, the name that leads to it, and the rows of its site of birth and its tensor, or -1.

    Until a recording has ended these rows are the recording's own. `scope` is the code that has the variable: file,
    function and first line. `contained`: held by 0 a variable itself, 1 an attribute, 2 an item of either, 3 an item
    of an item.
    """

    kind: str
    name: str
    bytes: int
    site: SiteId
    tensor: TensorId
    scope: tuple[str, str, int]
    contained: int


@dataclass(frozen=True, slots=True)
class Shortage:
    """A failed allocation of `asked` bytes, for which torch asked for a `block` of bytes; 0: nobody knows them."""

    device: str
    asked: int
    limit: int
    reserved: int
    allocated: int
    holdings: tuple[Holding, ...]
    block: int = 0


@dataclass(frozen=True, slots=True)
class Height:
    """Memory of a device when, at the op `op`, there was more than ever before; nothing failed.

    `counts`: how many storages each name had at each height before, the first first. `asked`: the user asked for it.
    """

    op: OpId
    memory: Shortage
    counts: tuple[Mapping[Key, int], ...]
    asked: bool
