"""Changed files as one unified diff, which `git apply` takes; each hunk says the reason behind its line numbers."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from devtrace.fixing.source_text import SourceText
from devtrace.words.text_format import one_line, shorten

_HUNK: Final = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@")
_NO_END: Final = "\\ No newline at end of file\n"
LONGEST_REASON: Final = 120
SHORTEST_REASON: Final = 60
"""Where a hunk has several."""


def unified_diff(
    before: Mapping[str, SourceText],
    after: Mapping[str, SourceText],
    reasons: Mapping[str, Iterable[tuple[int, str]]],
    folder: str = "",
) -> bytes:
    """Return the diff of all files, for `git apply` in a folder, else in the working directory.

    `reasons` gives, by file, the first changed line of each fix, and why it is made.
    """
    parts = []
    for file in sorted(after):
        old, new = before[file], after[file]
        name = relative(file, folder)
        lines = difflib.unified_diff(_whole(old.lines), _whole(new.lines), f"a/{name}", f"b/{name}", n=3)
        marked = (_with_reason(line, tuple(reasons.get(file, ()))) for line in lines)
        text = "".join(line if line.endswith("\n") else f"{line}\n" for line in marked)
        parts.append(f"diff --git a/{name} b/{name}\n{text}".encode(new.encoding, "surrogateescape"))
    return b"".join(parts)


def _whole(lines: list[str]) -> list[str]:
    """Mark a last line without an end as diffs do."""
    return [*lines[:-1], f"{lines[-1]}\n{_NO_END}"] if lines and not lines[-1].endswith("\n") else lines


def _with_reason(line: str, reasons: tuple[tuple[int, str], ...]) -> str:
    hunk = _HUNK.match(line)
    if hunk is None:
        return line
    first, count = int(hunk[1]), int(hunk[2] or 1)
    messages = [one_line(reason) for at, reason in reasons if first <= at < first + max(count, 1)]
    longest = max(LONGEST_REASON // max(len(messages), 1), SHORTEST_REASON)
    return f"{hunk[0]} {' '.join(shorten(message, longest) for message in messages)}".rstrip() + "\n"


def relative(path: str, folder: str = "") -> str:
    """Return a path relative to a folder, else to the working directory, as `git apply` wants it."""
    return Path(os.path.relpath(os.path.realpath(path), os.path.realpath(folder or os.getcwd()))).as_posix()
