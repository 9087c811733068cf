"""Lets what devtrace shows below a cell that ends in `clear_output(wait=True)` clear nothing of the cell's.

A front end clears once the next output comes: devtrace's own. So the kernel keeps the message back until the cell's
next output, which shows the same. Where none comes, the message goes out behind what devtrace shows.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from threading import Lock
from typing import Any, Final

from devtrace.runtime.patches import Call, Patches

_SILENT: Final = ("status", "update_display_data", "comm_open", "comm_msg", "comm_close")


class PendingClear:
    """Message of the cell that is traced, in its kernel's session; a terminal has none."""

    def __init__(self) -> None:
        self._patches, self._lock = Patches(), Lock()
        self._kept: Call | None = None

    def begin(self, publisher: Any) -> None:
        if (session := getattr(publisher, "session", None)) is not None:
            self._patches.wrap(session, "send", self._send, leaves=True)

    def _send(self, send: Call, *args: Any, **kwargs: Any) -> Any:
        _, message, content = (*args, None, None, None)[:3]
        kind, content = (message["msg_type"], message["content"]) if isinstance(message, dict) else (message, content)
        if kind == "clear_output" and content.get("wait") and self._patches.replaced:
            self._kept = partial(send, *args, **kwargs)
            return message
        # By its `msg_id` a widget begins or ceases to take what the cell shows and clears.
        if self._kept is not None and (kind not in _SILENT or "'msg_id'" in str(content)):
            with self._lock:  # no other thread's output may come first
                if self._kept is not None:
                    self._kept()
                    self._kept = None
        return send(*args, **kwargs)

    @contextmanager
    def behind(self) -> Iterator[None]:
        """End: let what is shown in this block come before the message."""
        if self._kept is not None:
            _flush()  # of the cell's own
        kept, self._kept = self._kept, None
        self._patches.undo()
        try:
            yield
        finally:
            if kept is not None:
                _flush()
                kept()


def _flush() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
