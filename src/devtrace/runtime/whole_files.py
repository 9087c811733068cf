"""Files that are written whole or not at all, for a program that has ended: what fails is a sentence, no exception."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from devtrace.words.catalogue import sentence
from devtrace.words.errors import DevtraceError


def prefixless(text: str) -> str:
    """Return a sentence of `write_somewhere` without the name of who says it."""
    return text.removeprefix("devtrace").lstrip("：: ")


def write_somewhere(folder: Path, path: Path, what: str, write: Callable[[Path], object]) -> tuple[bool, str]:
    """Write a file, or a spare one where that fails; return whether it is as asked, and the sentence about it."""
    reason = write_whole(folder / path, write)
    if reason is None:
        return True, sentence("cli.written", what=what, path=path)
    spare = Path(tempfile.gettempdir()) / f"{path.stem}-{os.getpid()}{path.suffix}"
    if write_whole(spare, write) is not None:
        return False, sentence("cli.lost", what=what, path=path, reason=reason)
    return False, sentence("cli.not-written", what=what, path=path, reason=reason, spare=spare)


def write_whole(path: Path, write: Callable[[Path], object]) -> str | None:
    """Write a file whole or not at all; return the reason if that failed."""
    beside = path.with_name(f"{path.name}.part")
    target = beside if not path.exists() or path.is_file() else path
    try:
        write(target)
        if target is beside:
            os.replace(beside, path)
    except OSError as error:
        if target is beside:
            beside.unlink(missing_ok=True)
        return error.strerror or str(error)
    except DevtraceError as error:
        return str(error)
    return None
