"""Blocks that nothing comes between: neither Ctrl+C nor the garbage collector.

What changes several tables at once must end, or they disagree for good.

    with uninterrupted():
        recorder.fold()

The interrupt comes at the end of the block. Python runs handlers of signals in the main thread alone.
"""

import gc
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def uninterrupted() -> Iterator[None]:
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler) or threading.current_thread() is not threading.main_thread():
        yield
        return
    interrupts: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda *signal_and_frame: interrupts.append(signal_and_frame))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if interrupts:
            handler(*interrupts[0])


@contextmanager
def no_collecting() -> Iterator[None]:
    """Hold Python's collector off: a program with many objects would be walked several times meanwhile."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
