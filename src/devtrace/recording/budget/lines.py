"""Notices, while nothing is recorded, a line of the user's code that the loop does not have.

Python 3.12 and newer call back before a line runs (`sys.monitoring`), and let a line that is known run at full speed.
Python 3.11 can do so only for every line, which costs more than it tells.
"""

import sys
from collections.abc import Callable, Iterable
from types import CodeType
from typing import Any, Final

from devtrace.recording.columns import sites
from devtrace.runtime.tracebacks import outward

_monitoring: Final[Any] = getattr(sys, "monitoring", None)
_TOOLS: Final = (4, 3)
_REPETITIONS: Final = 2
_RETURN: Final = -1

Line = tuple[CodeType, int]


class Lines:
    """Lines of each loop, learned in its last repetitions before recording stops."""

    def __init__(self, unknown: Callable[[Line], None]) -> None:
        self._unknown = unknown
        self._tool = -1
        self._codes: set[CodeType] = set()
        self._known: dict[Any, set[Line]] = {}
        self._loop: Any = None
        self._learning: set[Line] | None = None
        self._left = 0
        self._last = -1
        self._off = False
        if _monitoring is not None:
            self._tool = next((tool for tool in _TOOLS if _monitoring.get_tool(tool) is None), -1)

    @property
    def are_seen(self) -> bool:
        return self._tool >= 0

    def are_known(self, loop: Any, period: int, number: int, codes: Callable[[], Iterable[CodeType]]) -> bool:
        """Return whether the lines of a loop are known; else learn them in the repetitions that come.

        Asked at each event at which the loop goes on; `number` is that of the event.
        """
        if self._tool < 0 or loop in self._known:
            self._loop = loop
            return True
        if self._learning is None or number != self._last + 1 or self._left == 0:
            self._begin({*codes(), *_frames(sys._getframe(1))})
            self._left = _REPETITIONS * period
        self._last = number
        self._left -= 1
        if self._left > 0 or self._learning is None:
            return False
        self._known[loop], self._learning, self._loop = self._learning, None, loop
        return True

    def _begin(self, codes: set[CodeType]) -> None:
        self._learning = set()
        events = _monitoring.events
        if not self._codes:
            _monitoring.use_tool_id(self._tool, "devtrace")
            _monitoring.register_callback(self._tool, events.LINE, self._line)
            _monitoring.register_callback(self._tool, events.PY_RETURN, lambda code, *_: self._line(code, _RETURN))
        for code in codes - self._codes:
            _monitoring.set_local_events(self._tool, code, events.LINE | events.PY_RETURN)
        self._codes |= codes
        _monitoring.restart_events()

    def watch(self) -> None:
        """Nothing is recorded from here on."""
        self._off = self.are_seen
        if self._codes:
            _monitoring.restart_events()

    def rest(self) -> None:
        """All is recorded from here on."""
        self._off = False

    def forget(self) -> None:
        self._off = False
        if self._codes:
            for code in self._codes:
                _monitoring.set_local_events(self._tool, code, 0)
            _monitoring.free_tool_id(self._tool)
            self._codes = set()

    def _line(self, code: CodeType, line: int) -> Any:
        key = (code, line)
        if self._learning is not None:
            self._learning.add(key)
            return None
        if self._off and key not in self._known.get(self._loop, ()):
            self._unknown(key)
            return None
        return _monitoring.DISABLE


def _frames(frame: Any) -> Iterable[CodeType]:
    """Yield the user's code around: a loop may stand in a function that runs no op itself."""
    return (each.f_code for each in outward(frame) if sites.files[each.f_code.co_filename] == sites.USER)
