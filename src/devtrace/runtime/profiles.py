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
    """Leave out each mode's row, and the operator of the same name that ran right below it."""
    kept, open_rows = [], dict[int, list[Any]]()
    for event in sorted(events, key=lambda each: (each.time_range.start, -each.time_range.end)):
        around = open_rows.setdefault(event.thread, [])
        while around and around[-1].time_range.end < event.time_range.end:
            around.pop()
        below_a_mode = bool(around) and around[-1].name == _MODE
        above = next((each.name for each in reversed(around) if each.name != _MODE), "")
        around.append(event)
        if event.name != _MODE and not (below_a_mode and _plain(event.name) == _plain(above)):
            kept.append(event)
    return kept


def _plain(name: str) -> str:
    return name.rpartition("::")[2]
