"""Keeps the output of a cell that ends in `clear_output(wait=True)` when devtrace shows something below it.

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
    """Message `clear_output` of the traced cell, held back in its kernel's session; a terminal has none."""

    def __init__(self) -> None:
        self._patches, self._lock = Patches(), Lock()
        self._held_message: Call | None = None

    def begin(self, publisher: Any) -> None:
        if (session := getattr(publisher, "session", None)) is not None:
            self._patches.wrap(session, "send", self._send, leaves=True)

    def _send(self, send: Call, *args: Any, **kwargs: Any) -> Any:
        _, message, content = (*args, None, None, None)[:3]  # send(stream, message or its type, content)
        kind, content = (message["msg_type"], message["content"]) if isinstance(message, dict) else (message, content)
        if kind == "clear_output" and content.get("wait") and self._patches.replaced:
            self._held_message = partial(send, *args, **kwargs)
            return message
        # By its `msg_id` a widget begins or ceases to take what the cell shows and clears.
        if self._held_message is not None and (kind not in _SILENT or "'msg_id'" in str(content)):
            with self._lock:  # no other thread's output may come first
                if self._held_message is not None:
                    self._held_message()
                    self._held_message = None
        return send(*args, **kwargs)

    @contextmanager
    def behind(self) -> Iterator[None]:
        """Hold no more messages; send the held one after what this block shows."""
        if self._held_message is not None:
            _flush()  # of the cell's own
        message, self._held_message = self._held_message, None
        self._patches.undo()
        try:
            yield
        finally:
            if message is not None:
                _flush()
                message()


def _flush() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
