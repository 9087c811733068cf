"""What devtrace could not watch: faults of its own that the program must not feel, counted, and told in a report.

    with BIRTHS:
        stamps.put_birth(tensor, stamp)

A fault here is passed over in silence. The next report says "devtrace could not watch ... (2 times; KeyError: ...)".
"""

from collections.abc import Callable
from types import TracebackType
from typing import Final

from devtrace.runtime.tracebacks import text_of
from devtrace.words.catalogue import sentence

_missed: dict[str, tuple[int, str]] = {}


class Faults:
    """A block whose faults are ours: `miss` takes one, and the program goes on behind the block."""

    __slots__ = ("miss",)

    def __init__(self, miss: Callable[[Exception], None]) -> None:
        self.miss = miss

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        self.miss(error)
        return True


class Watch(Faults):
    """A block for one kind of thing that is watched; `answers` are the exceptions of objects that have nothing to see.

    A weak reference to an object that takes none is a TypeError and no fault.
    """

    __slots__ = ("_answers", "_what")

    def __init__(self, what: str, *answers: type[Exception]) -> None:
        super().__init__(self._miss)
        self._what = what
        self._answers = answers

    def _miss(self, fault: Exception) -> None:
        """Count a fault that was caught elsewhere."""
        if isinstance(fault, self._answers):
            return
        count, first = _missed.get(self._what, (0, ""))
        _missed[self._what] = count + 1, first or f"{type(fault).__name__}: {text_of(fault)}"


def missed() -> list[str]:
    """Return a sentence for each kind of thing that was missed since this was asked last."""
    faults = [(what, _missed.pop(what)) for what in list(_missed)]
    return [
        sentence("note.not-watched", what=sentence(key), count=count, fault=fault) for key, (count, fault) in faults
    ]


BIRTHS: Final = Watch(
    "watched.births", TypeError, NotImplementedError
)  # of what takes no weak reference, or has no storage
MOVES: Final = Watch("watched.moves", TypeError, NotImplementedError)
STATES: Final = Watch("watched.states", TypeError)
NAMES: Final = Watch("watched.names")
MODULES: Final = Watch("watched.modules")
ERRORS: Final = Watch("watched.errors")
