"""What devtrace prints beside a program's own output."""

from __future__ import annotations

import contextlib
import os
import sys


def print_line(text: str) -> None:
    """Print to stderr, which may be closed, or not take every character."""
    stream = sys.stderr
    try:
        encoding = getattr(stream, "encoding", None) or "utf-8"
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
        stream.flush()
    except RuntimeError:  # a signal came in the middle of the program's own write to stderr
        with contextlib.suppress(OSError):
            os.write(2, text.encode("utf-8", "backslashreplace") + b"\n")
    except (AttributeError, OSError, ValueError):
        return
