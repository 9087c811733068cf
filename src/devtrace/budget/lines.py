"""Notices a line of the user's code before it runs, until it is known.

Python 3.12 and newer call back at each line (`sys.monitoring`), and let one that is known run at full speed. Python
3.11 can call back only at every line, which costs more than it tells.
"""

import sys
from collections.abc import Callable, Iterable
from types import CodeType
from typing import Any, Final

from devtrace.recording.columns import sites
from devtrace.runtime.tracebacks import outward

_monitoring: Final[Any] = getattr(sys, "monitoring", None)


class Lines:
    """Asks whether a line is known, at each of the code that is watched: by the code's id, and -1 for its return."""

    def __init__(self, is_known: Callable[[tuple[int, int]], bool]) -> None:
        self._is_known = is_known
        self._codes: dict[int, CodeType] = {}
        tools = () if _monitoring is None else (4, 3)
        self._tool = next((tool for tool in tools if _monitoring.get_tool(tool) is None), -1)
        self.are_seen = self._tool >= 0

    def watch(self, ran_at: Iterable[int], frame: Any) -> None:
        """Watch the user's code at sites and around a frame: a loop may stand in a function that runs no op."""
        codes = {sites.position(user_site).code for site in ran_at if (user_site := sites.own(site)) >= 0}
        codes |= {outer.f_code for outer in outward(frame) if sites.files[outer.f_code.co_filename] == sites.USER}
        events = _monitoring.events
        for code in codes:
            if not self._codes:
                _monitoring.use_tool_id(self._tool, "devtrace")
                _monitoring.register_callback(self._tool, events.LINE, self._at_line)
                _monitoring.register_callback(self._tool, events.PY_RETURN, lambda code, *_: self._at_line(code, -1))
            if id(code) not in self._codes:
                self._codes[id(code)] = code
                _monitoring.set_local_events(self._tool, code, events.LINE | events.PY_RETURN)

    def forget(self) -> None:
        for code in self._codes.values():
            _monitoring.set_local_events(self._tool, code, 0)
        if self._codes:
            _monitoring.free_tool_id(self._tool)
        self._codes = {}

    def _at_line(self, code: CodeType, line: int) -> Any:
        """Return DISABLE for a known line, so that Python does not call back at it again."""
        return _monitoring.DISABLE if self._is_known((id(code), line)) else None
