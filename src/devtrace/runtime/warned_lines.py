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
    around = outward(sys._getframe(2))  # past the frame of `Patches.wrap`, which a warning may name
    named = next((frame for frame in around if frame.f_code.co_filename == given.filename), None)
    line = first_of_program(named)
    if named is None or line is None or line is named:
        show(given)
        return
    named.f_globals.pop("__warningregistry__", None)  # else only the first line would ever be shown
    warnings.onceregistry.pop((str(given.message), given.category), None)  # type: ignore[attr-defined]
    module, registry = line.f_globals.get("__name__"), line.f_globals.setdefault("__warningregistry__", {})
    warnings.warn_explicit(
        given.message, given.category, line.f_code.co_filename, line.f_lineno, module, registry, source=given.source
    )
