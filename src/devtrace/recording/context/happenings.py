"""When and where something happened: for the hooks, which run where no op does."""

import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

from torch.compiler import is_compiling

from devtrace.recording.hot.recorder import Recorder
from devtrace.runtime.patches import Call
from devtrace.runtime.watching import Faults

recorders: Final[list[Recorder]] = []
"""Running ones; the last is the innermost."""


def follow(watch: Faults, note: Callable[[Any, Any, FrameType], None], method: Call, *args: Any, **kwargs: Any) -> Any:
    """Run a method that `Patches.wrap` replaced; then `note` gets its object, its result and the frame around it."""
    result = method(*args, **kwargs)
    if not is_compiling():
        with watch:
            note(args[0], result, sys._getframe(2))
    return result


def next_op() -> int:
    """Return the number of this thread's next op, -1 if it is not recorded. A recording that pauses goes on."""
    if not recorders:
        return -1
    resume()
    state = recorders[-1].states.get(threading.get_ident())
    return -1 if state is None else state.op


def op_of_attaching(site: int) -> int:
    """Return `next_op()`; but a recording that pauses stays so where a site attaches modules time and again."""
    sampler = recorders[-1].sampler_here() if recorders else None
    if sampler is not None and sampler.attach(site):
        return recorders[-1].threads[0].op
    return next_op()


def resume() -> bool:
    """Let a recording that pauses go on; return whether it did pause."""
    sampler = recorders[-1].sampler_here()
    return sampler is not None and sampler.change()
