"""Variables of the functions that a program's top level calls, as they are when these return.

def main(): ...         # a script that does all its work here leaves no variable of its own
"""

from __future__ import annotations

import inspect
import sys
from collections import Counter
from collections.abc import Mapping
from types import FrameType
from typing import Any

from devtrace.fixing.values import values_of
from devtrace.source.user_code import owner_of


class Returned:
    """Trace function of a round of `devtrace fix`; of many calls it looks at the first, second, fourth, eighth ..."""

    def __init__(self, namespace: Mapping[str, object]) -> None:
        self.values: dict[str, Any] = {}
        self.namespace = namespace
        self._calls = Counter[str]()

    def begin(self) -> None:
        if sys.gettrace() is None:  # a debugger or coverage is there first
            sys.settrace(self._called)

    def _called(self, frame: FrameType, event: str, _: Any) -> Any:
        caller, code = frame.f_back, frame.f_code
        if caller is None or caller.f_globals is not self.namespace or caller.f_code.co_name != "<module>":
            return None
        is_whole = code.co_flags & inspect.CO_OPTIMIZED and not code.co_flags & inspect.CO_GENERATOR
        if not is_whole or code.co_name[:1] == "<" or owner_of(code.co_filename) != "user":
            return None
        frame.f_trace_lines = False
        return self._returns

    def _returns(self, frame: FrameType, event: str, _: Any) -> Any:
        name = frame.f_code.co_qualname
        if event == "return":
            self._calls[name] += 1
            if self._calls[name].bit_count() == 1:
                found = _read(frame.f_locals)
                self.values.update((f"{name}: {path}", value) for path, value in found.items())
        return self._returns


def _read(variables: Mapping[str, object]) -> dict[str, Any]:
    """Return values while the program runs: no recording sees what reads them."""
    torch = sys.modules["torch"]
    with torch._C._DisableTorchDispatch(), torch._C.DisableTorchFunction():
        return values_of(variables)
