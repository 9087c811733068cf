"""Files that are written whole or not at all: a reader never sees half of one, and a full disk takes no old file.

For a program that has ended, what fails is a sentence and no exception (`write_somewhere`).
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from devtrace.words.catalogue import sentence
from devtrace.words.errors import DevtraceError, UsageError


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
    """Write a file with a function that writes whole files; return the reason if that failed."""
    try:
        write(path)
    except OSError as error:
        return error.strerror or str(error)
    except DevtraceError as error:
        return str(error)
    return None


def write_as_asked(path: Path, write: Callable[[Path], object], what: str) -> None:
    """Write a file, or raise the sentence why not."""
    reason = write_whole(path, write)
    if reason is not None:
        raise UsageError.of("not-written", file=path, reason=reason, what=what)


@contextmanager
def whole(path: str | Path) -> Iterator[Path]:
    """Give a file beside another to write to, which takes the other's place when the block ends well.

    A link stays one, and what is no file (`/dev/stdout`) is written to itself.
    """
    goal = Path(os.path.realpath(path))
    if str(path).startswith(("/dev/", "/proc/")) or (goal.exists() and not goal.is_file()):
        yield Path(path)
        return
    beside = goal.with_name(f".{goal.name}.{os.getpid()}.part")
    try:
        yield beside
        if goal.exists():
            shutil.copymode(goal, beside)
        os.replace(beside, goal)
    except BaseException:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise


def put(path: str | Path, text: str | bytes) -> Path:
    """Write a file whole or not at all; an OSError says why not."""
    with whole(path) as beside:
        beside.write_bytes(text if isinstance(text, bytes) else text.encode())
    return Path(path)
