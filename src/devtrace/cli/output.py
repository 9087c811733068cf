"""What devtrace prints beside a program's own output."""

import contextlib
import os
import sys
from collections.abc import Callable
from typing import Final, TextIO

from devtrace.runtime.requirements import sentence_of_fault
from devtrace.words.catalogue import sentence
from devtrace.words.errors import DevtraceError

FOUND: Final = 1
"""The exit code where there is what `--fail-on` names; that of a program that failed stays."""
FAULT: Final = 3
"""The exit code where devtrace could not begin what the program was to run under."""


def begin(start: Callable[[], object], *, ends_program: bool) -> None:
    """Begin something within the program's `import torch`: a fault is a sentence, and none of the program's."""
    try:
        start()
    except Exception as fault:  # noqa: BLE001 (whatever it is, it is ours)
        is_known = isinstance(fault, DevtraceError)
        print_line(sentence("run.line", text=fault) if is_known else sentence_of_fault("run.not-begun", fault))
        if ends_program:
            raise SystemExit(FAULT) from None


def print_line(text: str, stream: TextIO | None = None, *, but_not_empty: bool = False) -> None:
    """Print to stderr, or another stream, which may be closed, or not take every character."""
    stream = stream or sys.stderr
    if but_not_empty and not text:
        return
    try:
        encoding = getattr(stream, "encoding", None) or "utf-8"
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
        stream.flush()
    except RuntimeError:  # a signal came in the middle of the program's own write to stderr
        with contextlib.suppress(OSError):
            os.write(1 if stream is sys.stdout else 2, text.encode("utf-8", "backslashreplace") + b"\n")
    except (AttributeError, OSError, ValueError):
        return
