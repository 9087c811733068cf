"""Files that are written whole or not at all, for a program that has ended: what fails is a sentence, no exception."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from devtrace.words.errors import DevtraceError


def write_somewhere(folder: Path, path: Path, what: str, write: Callable[[Path], object]) -> tuple[bool, str]:
    """Write a file, or a spare one where that fails; return whether it is as asked, and the sentence about it."""
    reason = write_whole(folder / path, write)
    if reason is None:
        return True, f"devtrace: the {what} is in {path}"
    spare = Path(tempfile.gettempdir()) / f"{path.stem}-{os.getpid()}{path.suffix}"
    lost = write_whole(spare, write)
    where = "it is lost" if lost else f"it is in {spare} instead"
    return False, f"devtrace: the {what} could not be written to {path} ({reason}); {where}"


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
