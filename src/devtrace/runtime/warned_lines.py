"""Warnings name the program's line: since torch 2.15 an operator raises its own where it is called, which is in a mode.

Whatever else calls torch here (a wrapped function that warns with a `stacklevel`) is put right as well. A warning is
given again as the program's, so that "once for each line" and filters by module are about the program.
"""

import sys
import warnings
from typing import Any

from devtrace.runtime.patches import Call, Patches
from devtrace.runtime.tracebacks import first_of_program, outward


def install(patches: Patches) -> None:
    """Replace what shows a warning; Python's C looks it up by its name too."""
    patches.wrap(warnings, "_showwarnmsg", _show_at_the_programs_line)


def _show_at_the_programs_line(show: Call, given: Any) -> None:
    frames = outward(sys._getframe(2))  # past the frame of `Patches.wrap`, which a warning may name
    named_frame = next((each for each in frames if each.f_code.co_filename == given.filename), None)
    frame = first_of_program(named_frame)
    if named_frame is None or frame is None or frame is named_frame:
        show(given)
        return
    named_frame.f_globals.pop("__warningregistry__", None)  # else only the first line would ever be shown
    warnings.onceregistry.pop((str(given.message), given.category), None)  # type: ignore[attr-defined]
    module, registry = frame.f_globals.get("__name__"), frame.f_globals.setdefault("__warningregistry__", {})
    warnings.warn_explicit(
        given.message, given.category, frame.f_code.co_filename, frame.f_lineno, module, registry, source=given.source
    )
