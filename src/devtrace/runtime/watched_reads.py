"""Tells of each value that is read (`.item()`), before it is, where no dispatch mode sees the op.

A kernel of Python's for that op lies between autograd's and the modes: a mode that is put on in it sees the op. It adds
7 us to each read, of which Adam has two a parameter; so there is none where no device is waited for.
"""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

import torch

from devtrace.runtime.torch_names import take

_READ: Final = take("ops.aten._local_scalar_dense.default", "waits", instead=None)
_BELOW: Final = take("_C._after_ADInplaceOrView_keyset", "waits", instead=None)


class Reads:
    """Reads of the process; while they are watched none may go past the dispatcher."""

    def __init__(self) -> None:
        self._library: Any = None
        self._tell: Callable[[FrameType], object] = print

    @property
    def are_watched(self) -> bool:
        return self._library is not None

    def watch(self, tell: Callable[[FrameType], object]) -> None:
        """Call `tell` with the frame of each read; it may end the watch."""
        if _READ is not None and getattr(torch, "accelerator", torch.cuda).is_available():
            self._tell = tell
            self._library = torch.library.Library("aten", "IMPL", "ADInplaceOrView")
            self._library.impl("_local_scalar_dense", self._read, with_keyset=True)

    def forget(self) -> None:
        if self._library is not None:
            self._library._destroy()
            self._library = None

    def _read(self, keys: Any, tensor: Any) -> Any:
        self._tell(sys._getframe(1))
        if self._library is None:
            return _READ(tensor)  # from the top, where a mode may be now
        return _READ.redispatch(keys & _BELOW, tensor)


READS: Final = Reads()
