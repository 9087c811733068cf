"""When and where something happened: for the hooks, which run where no op does."""

import functools
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

from torch.compiler import is_compiling

from devtrace.recording.columns import sites
from devtrace.recording.columns.module_notes import Happening
from devtrace.recording.columns.process_history import history
from devtrace.recording.columns.sites import USER, files, known
from devtrace.recording.hot.recorder import Recorder
from devtrace.runtime.watching import Watch

recorders: Final[list[Recorder]] = []
"""Running ones; the last is the innermost."""


def now(depth: int) -> Happening:
    return Happening(site_of(sys._getframe(depth + 1)), next(history.ticks), next_op())


def followed(original: Callable[..., Any], watch: Watch, note: Callable[[Any, Any, FrameType], None]) -> Any:
    """Wrap a method: when it has run, `note` gets its object, its result and the frame that called it."""

    @functools.wraps(original)
    def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
        made = original(self, *args, **kwargs)
        if not is_compiling():
            with watch:
                note(self, made, sys._getframe(1))
        return made

    return wrapped


def next_op() -> int:
    """Return the number of the next op of the running recording, in this thread; -1 where none runs."""
    if not recorders:
        return -1
    changing()
    state = recorders[-1].states.get(threading.get_ident())
    return -1 if state is None else state.op


def op_of_attaching(site: int) -> int:
    """Return the number of the next op, of those that are recorded where such a module is attached time and again."""
    sampler = recorders[-1].sampler_here() if recorders else None
    if sampler is not None and sampler.attach(site):
        return recorders[-1].threads[0].op
    return next_op()


def changing() -> bool:
    """Let a recording that had stopped for a while go on; return whether it had."""
    sampler = recorders[-1].sampler_here()
    return sampler is not None and sampler.change()


def site_of(frame: FrameType | None) -> int:
    """Return `sites.find` of a frame, the quick way for a line that was here before."""
    found: Any = frame
    try:
        while not (kind := files[found.f_code.co_filename]):
            found = found.f_back
        if kind == USER:
            return known[id(found.f_code)][found.f_lasti]
    except (AttributeError, KeyError):  # no frame, or not yet known
        pass
    return sites.find(found)
