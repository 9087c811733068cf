"""What devtrace could not watch: faults of its own that the program must not feel, counted, and told in a report.

    with BIRTHS:
        stamps.put_birth(tensor, stamp)

A fault here is passed over in silence. The next report says "devtrace could not watch ... (2 times; KeyError: ...)".
"""

from collections.abc import Callable
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

    def __exit__(self, kind: object, error: object, traceback: object) -> bool:
        if not isinstance(error, Exception):
            return False
        self.miss(error)
        return True


def _watch(what: str, *answers: type[Exception]) -> Faults:
    """Return a block for one kind of thing that is watched; `answers` are the exceptions of what has nothing to see.

    A weak reference to an object that takes none is a TypeError and no fault.
    """

    def miss(fault: Exception) -> None:
        if not isinstance(fault, answers):
            count, first = _missed.get(what, (0, ""))
            _missed[what] = count + 1, first or f"{type(fault).__name__}: {text_of(fault)}"

    return Faults(miss)


def missed() -> list[str]:
    """Return a sentence for each kind of thing that was missed since this was asked last."""
    faults = [(what, _missed.pop(what)) for what in list(_missed)]
    return [
        sentence("note.not-watched", what=sentence(key), count=count, fault=fault) for key, (count, fault) in faults
    ]


# A TypeError is of what takes no weak reference, a NotImplementedError of what has no storage.
BIRTHS: Final = _watch("watched.births", TypeError, NotImplementedError)
MOVES: Final = _watch("watched.moves", TypeError, NotImplementedError)
STATES: Final = _watch("watched.states", TypeError)
NAMES: Final = _watch("watched.names")
MODULES: Final = _watch("watched.modules")
ERRORS: Final = _watch("watched.errors")
