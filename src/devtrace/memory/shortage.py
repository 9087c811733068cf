"""What was alive on a device where an allocation failed, as recording hands it to diagnosis: rows, no tensors."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from devtrace.trace.ids import OpId, SiteId, TensorId

Key = tuple[str, tuple[str, str, int]]
"""A name and its scope."""
NOBODY: Final = ("", "", 0)


class Holding(NamedTuple):
    """A storage: how it is held and by whose name, the row of the site of its birth, of its tensor; -1 for none.

    Until a recording has ended these rows are the recording's own.
    `scope` is the code of which `name` is a variable: file, function and first line. `contained`: by 0 a
    variable itself, 1 an attribute, 2 an item of either, 3 an item of an item.
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
    """An allocation of `asked` bytes, for which a `block` was asked, that ended the program; 0: nobody knows it."""

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

    `counts`: the storages of each name, by its scope, at each height before, the first first. `asked`: it is reported.
    """

    op: OpId
    memory: Shortage
    counts: tuple[Mapping[Key, int], ...]
    asked: bool
