"""Tells outermost calls of modules apart: by the module, and by all calls that lead to its line."""

from collections.abc import Hashable
from types import CodeType
from typing import Any

from devtrace.recording.columns import sites
from devtrace.recording.context.module_tree import is_training

Event = tuple[Any, ...]
"""(module, whether it trains, calls that lead to it), or (optimizer, whether it has a closure); by their ids."""
_CALL = 3
_SEEN = (sites.USER, sites.LIBRARY)


def is_call(event: Hashable) -> bool:
    """Return whether an event is a module's call, and no step."""
    return isinstance(event, tuple) and len(event) == _CALL


class Events:
    """Calls as seen from where the recording began: what is around that, as the notebook's server, never changes."""

    def __init__(self) -> None:
        self._around: dict[int, CodeType] = {}
        self._known: dict[tuple[int, ...], int] = {}  # id and instruction of each caller -> a number for them

    def begin(self, frame: Any) -> None:
        while frame is not None:
            self._around[id(frame.f_code)] = frame.f_code
            frame = frame.f_back

    def of_call(self, module: Any, frame: Any) -> Event:
        """Return the event of a call that comes from a frame."""
        kinds, around, callers = sites.files, self._around, list[int]()
        while frame.f_back is not None and kinds[frame.f_code.co_filename] not in _SEEN:
            frame = frame.f_back
        while frame is not None:
            code = id(frame.f_code)
            callers += (code, frame.f_lasti)
            frame = None if code in around else frame.f_back
        key = tuple(callers)
        return id(module), is_training(module), self._known.get(key) or self._number(key)

    def _number(self, callers: tuple[int, ...]) -> int:
        """Return a number for the calls that lead to a frame: a function's loop is another one where that is called.

        A function that calls itself counts once, however deep.
        """
        number = self._known[callers] = hash(frozenset(zip(callers[::2], callers[1::2], strict=True)))
        return number
