"""Live evidence for diagnosis beside the trace, while the traced program is still there."""

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Final, TypeVar

Fact = TypeVar("Fact")


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


@dataclass(frozen=True, slots=True)
class Live:
    """`frames`: of the exception that ended the recording, innermost first, each with its row in the trace's sites.
    `namespace`: the user's variables. `row_of`: the row in the trace's tensors of a tensor that it saw, else None.
    `around`: where an op of a thread raised, the rows of the sites around it, innermost first; its frames are gone.
    `cells`: those that ran so far, oldest first. `facts`: what observers of the recording noted, asked for by class.
    `walk`: all that the frames' variables lead to, where that has been visited already.
    `went_on`: ops that raised, of which the program caught the error and went on.
    """

    frames: tuple[tuple[int, FrameType], ...] = ()
    namespace: Mapping[str, Any] | None = None
    row_of: Callable[[object], int | None] = lambda _: None
    around: tuple[int, ...] = ()
    cells: tuple[CellText, ...] = ()
    walk: Any = None
    evidence: Evidence = field(default_factory=Evidence)
    facts: tuple[object, ...] = ()
    went_on: frozenset[int] = frozenset()

    def facts_of(self, kind: type[Fact]) -> tuple[Fact, ...]:
        return tuple(each for each in self.facts if isinstance(each, kind))


_NOT_KEPT: Final = 3  # references to a frame's own copy of its variables: its, ours, the one that counts them


def forget_locals(frame: FrameType) -> None:
    """Reading `frame.f_locals` of a function leaves a copy in the frame (before Python 3.13): tensors stay alive.

    A program that kept what its `locals()` returned has the very same dictionary; that one stays as it is.
    """
    if frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        copy = frame.f_locals
        if type(copy) is dict and sys.getrefcount(copy) <= _NOT_KEPT:
            copy.clear()
