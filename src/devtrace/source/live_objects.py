"""What a recording leaves beside its trace: cells that ran, how certain it is; and frames without their copies."""

import inspect
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import FrameType
from typing import Final


@dataclass(frozen=True, slots=True)
class CellText:
    """A notebook cell that ran, traced or not: `text` is the code that ran, its line 1 is line `first` of the cell.

    It ran as In[`count`]; `number` is the cell's number now, another one where it has run again since.
    """

    file: str
    count: int
    cell_id: str
    text: str
    first: int
    number: int = -1


@dataclass(frozen=True)
class Evidence:
    """Certainty about a trace: of a recording all, but that before op `gap` some ops were not recorded.

    `late`: see `registered_late`, by tensor. `births`: of a trace that was read from the source, the tensors whose
    births the hooks saw.
    """

    gap: int = -1
    late: Mapping[int, tuple[int, bool]] = field(default_factory=dict)
    births: frozenset[int] | None = None

    @property
    def saw_ops(self) -> bool:
        """Return whether the ops before the failed one were seen, in their order."""
        return self.births is None

    def saw_birth(self, tensor: int) -> bool:
        return self.births is None or tensor in self.births

    def registered_late(self, tensor: int) -> tuple[int, bool]:
        """Return the op before which a tensor of unknown birth was registered, and whether a layer made it then."""
        return self.late.get(tensor, (-1, False))


_NOT_KEPT: Final = 3  # references to a frame's own copy of its variables: its, ours, the one that counts them


def forget_locals(frame: FrameType) -> None:
    """Reading `frame.f_locals` of a function leaves a copy in the frame (before Python 3.13): tensors stay alive.

    A program that kept what its `locals()` returned has the very same dictionary; that one stays as it is.
    """
    if frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        copy = frame.f_locals
        if type(copy) is dict and sys.getrefcount(copy) <= _NOT_KEPT:
            copy.clear()
