"""Changed files, as one unified diff or written: all or none.

`git apply` takes the diff, of which each hunk says the reason behind its line numbers. Files are written after every
check, each beside its place first. Whatever interrupts the putting, those that were already replaced get their old text
back.
"""

import difflib
import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from devtrace.fixing.source_text import SourceText
from devtrace.words.errors import UsageError
from devtrace.words.text_format import one_line, shorten

_HUNK: Final = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@")
_NO_END: Final = "\\ No newline at end of file\n"
LONGEST_REASON: Final = 120
SHORTEST_REASON: Final = 60
"""Where a hunk has several."""


def unified_diff(
    before: Mapping[str, SourceText],
    after: Mapping[str, SourceText],
    reasons: Mapping[str, Sequence[tuple[int, str]]],
    folder: str = "",
) -> bytes:
    """Return the diff of all files, for `git apply` in a folder, else in the working directory.

    `reasons` gives, by file, the first changed line of each fix, and why it is made.
    """
    parts = []
    for file in sorted(after):
        old, new = before[file], after[file]
        name = relative(file, folder)
        lines = list(difflib.unified_diff(_with_end_mark(old.lines), _with_end_mark(new.lines), n=3))[2:]
        if lines:
            parts.append(os.fsencode(f"diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n"))
        parts += [_encoded_line(line, reasons.get(file, ()), new.encoding) for line in lines]
    return b"".join(parts)


def _with_end_mark(lines: list[str]) -> list[str]:
    """Return the lines of a file; a last one without a line feed is marked as diffs mark it."""
    return [*lines[:-1], f"{lines[-1]}\n{_NO_END}"] if lines and not lines[-1].endswith("\n") else lines


def _encoded_line(line: str, reasons: Sequence[tuple[int, str]], encoding: str) -> bytes:
    """Return a diff's line in the file's encoding; the line of a hunk in UTF-8, with the reasons of its changes."""
    hunk = _HUNK.match(line)
    if hunk is None:
        return (line if line.endswith("\n") else f"{line}\n").encode(encoding, "surrogateescape")
    first, count = int(hunk[1]), int(hunk[2] or 1)
    messages = [one_line(reason) for changed_line, reason in reasons if first <= changed_line < first + max(count, 1)]
    longest = max(LONGEST_REASON // max(len(messages), 1), SHORTEST_REASON)
    reason = " ".join(shorten(message, longest) for message in messages)
    return f"{hunk[0]} {reason}".rstrip().encode() + b"\n"


def relative(path: str, folder: str = "") -> str:
    """Return a path relative to a folder, else to the working directory, as `git apply` wants it."""
    return Path(os.path.relpath(os.path.realpath(path), os.path.realpath(folder or os.getcwd()))).as_posix()


def write_all(before: Mapping[str, SourceText], after: Mapping[str, SourceText]) -> None:
    """Write the new texts to files that still have the old ones."""
    for file in after:
        _check_replaceable(Path(file), before[file])
    temps: list[Path] = []
    replaced: list[str] = []
    try:
        old, new = ({file: _beside(Path(file), texts[file].data, temps) for file in after} for texts in (before, after))
        try:
            for file in after:
                replaced.append(file)
                os.replace(new[file], file)
        except BaseException:
            for file in replaced:
                os.replace(old[file], file)
            raise
    except OSError as error:
        raise UsageError.of("fix-not-written.failed", path=error.filename, reason=error.strerror or error) from None
    finally:
        for path in temps:
            with suppress(OSError):
                path.unlink(missing_ok=True)


def _check_replaceable(path: Path, expected: SourceText) -> None:
    """Raise unless a file can be replaced, and is as it was when the program ran."""
    if not path.exists():
        raise UsageError.of("fix-not-written.gone", path=path)
    if path.is_symlink():
        raise UsageError.of("fix-not-written.link", path=path, target=path.resolve())
    if not os.access(path, os.W_OK) or not os.access(path.parent, os.W_OK):
        raise UsageError.of("fix-not-written.locked", path=path)
    if path.read_bytes() != expected.data:
        raise UsageError.of("fix-not-written.changed", path=path)


def _beside(path: Path, data: bytes, temps: list[Path]) -> Path:
    """Write data into a new file in a path's folder, with its permissions; `temps` gets that file."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.devtrace-", dir=path.parent)
    temps.append(Path(name))
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    shutil.copymode(path, name)
    return Path(name)
