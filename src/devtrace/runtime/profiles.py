"""A profile of a program has its operators once each: the rows that torch adds for a mode of ours are taken out.

aten::add  >  PythonDispatchMode  >  aten::add  >  aten::copy_        ->        aten::add  >  aten::copy_
"""

from collections.abc import Iterable
from typing import Any, Final

from torch.autograd import profiler

from devtrace.runtime.mode_stack import all_are_ours
from devtrace.runtime.patches import Call, Patches

_MODE: Final = "PythonDispatchMode"


def install(patches: Patches) -> None:
    """Replace what makes a profile's events of what C++ has seen."""
    patches.wrap(profiler.profile, "_parse_kineto_results", _without_our_modes)


def _without_our_modes(own: Call, *args: Any, **kwargs: Any) -> Any:
    events = own(*args, **kwargs)
    if all_are_ours():  # else some of the rows are those of the program's modes
        events[:] = _once_each(events)
    return events


def _once_each(events: Iterable[Any]) -> list[Any]:
    """Leave out each mode's row, and below it the row of the operator that the mode was called for."""
    kept, open_rows = [], dict[int, list[Any]]()
    for event in sorted(events, key=lambda row: (row.time_range.start, -row.time_range.end)):
        around = open_rows.setdefault(event.thread, [])
        while around and around[-1].time_range.end < event.time_range.end:
            around.pop()
        is_below_mode = bool(around) and around[-1].name == _MODE
        operator = next((row.name for row in reversed(around) if row.name != _MODE), "")
        around.append(event)
        if event.name != _MODE and not (is_below_mode and _bare_name(event.name) == _bare_name(operator)):
            kept.append(event)
    return kept


def _bare_name(name: str) -> str:
    return name.rpartition("::")[2]
