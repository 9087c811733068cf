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

from devtrace.fixing import values
from devtrace.source.user_code import owner_of


class ValuesOfRun:
    """Values that a round of `devtrace fix` leaves; any other run is left alone.

    Of many calls of a function it looks at the first, second, fourth, eighth ...
    """

    def __init__(self, namespace: Mapping[str, object]) -> None:
        self._returned: dict[str, Any] = {}
        self._namespace = namespace
        self._path = values.path_of_this_run()
        self._calls = Counter[str]()

    def begin(self) -> None:
        if self._path is not None:
            values.seed()
            if sys.gettrace() is None:  # a debugger or coverage is there first
                sys.settrace(self._called)

    def end(self) -> None:
        """Write them while the tensors still have their simulated devices."""
        if self._path is not None:
            sys.settrace(None)
            values.write(self._path, self._namespace, self._returned)

    def _called(self, frame: FrameType, event: str, _: Any) -> Any:
        caller, code = frame.f_back, frame.f_code
        if caller is None or caller.f_globals is not self._namespace or caller.f_code.co_name != "<module>":
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
                self._returned.update((f"{name}: {path}", value) for path, value in found.items())
        return self._returns


def _read(variables: Mapping[str, object]) -> dict[str, Any]:
    """Return values while the program runs: no recording sees what reads them."""
    torch = sys.modules["torch"]
    with torch._C._DisableTorchDispatch(), torch._C.DisableTorchFunction():
        return values.values_of(variables)
