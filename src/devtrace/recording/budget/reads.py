"""Notices on Python 3.11, while nothing is recorded, that a value is read: perhaps at a line that no repetition has.

Newer Pythons call back at such a line itself (`lines`). A kernel of Python's for the op that reads a value lies between
autograd's and the dispatch modes: it sees what no mode has to see, and a mode that it puts on sees the op. It adds 7 us
to each read, of which Adam has two a parameter; so there is none where no device is to be waited for.
"""

import sys
from collections.abc import Callable
from typing import Any, Final

import torch

from devtrace.runtime.torch_names import take
from devtrace.runtime.watched_reads import READS

READ: Final = take("ops.aten._local_scalar_dense.default", "waits", instead=None)
BELOW: Final = take("_C._after_ADInplaceOrView_keyset", "waits", instead=None)


class Reads:
    """Asks at each value that is read, in the frame that reads it, whether recording goes on there."""

    def __init__(self, goes_on: Callable[[Any], bool]) -> None:
        self._goes_on = goes_on
        self._library: Any = None

    def watch(self) -> None:
        """Nothing is recorded from here on."""
        if self._library is None and READ is not None and _has_devices():
            self._library = torch.library.Library("aten", "IMPL", "ADInplaceOrView")
            self._library.impl("_local_scalar_dense", self._read, with_keyset=True)
            READS.are_watched = True

    def forget(self) -> None:
        """All is recorded from here on, or reads are too many to be watched."""
        if self._library is not None:
            self._library._destroy()
            self._library = None
            READS.are_watched = False

    def _read(self, keys: Any, tensor: Any) -> Any:
        if self._library is not None and self._goes_on(sys._getframe(1)):
            return READ(tensor)  # from the top, where the mode is now
        return READ.redispatch(keys & BELOW, tensor)


def _has_devices() -> bool:
    """Return whether there is an accelerator, simulated or not."""
    found: Any = getattr(torch, "accelerator", torch.cuda)
    return bool(found.is_available())
