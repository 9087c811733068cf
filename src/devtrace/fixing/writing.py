"""Changed files written all or none: after every check, each beside its file first, then put in its place.

Whatever interrupts the putting, the files that were already replaced get their old text back.
"""

import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from devtrace.fixing.source_text import SourceText
from devtrace.words.errors import UsageError


def write_all(before: Mapping[str, SourceText], after: Mapping[str, SourceText]) -> None:
    """Write the new texts to files that still have the old ones."""
    for file in after:
        _check(Path(file), before[file])
    spare: list[Path] = []
    replaced: list[str] = []
    try:
        old, new = ({file: _beside(Path(file), texts[file].data, spare) for file in after} for texts in (before, after))
        try:
            for file in after:
                replaced.append(file)
                _put(new[file], file)
        except BaseException:
            for file in replaced:
                _put(old[file], file)
            raise
    except OSError as error:
        raise UsageError.of("fix-not-written.failed", path=error.filename, reason=error.strerror or error) from None
    finally:
        for path in spare:
            with suppress(OSError):
                path.unlink(missing_ok=True)


def _check(path: Path, expected: SourceText) -> None:
    """Raise unless a file can be replaced, and is as it was when the program ran."""
    if not path.exists():
        raise UsageError.of("fix-not-written.gone", path=path)
    if path.is_symlink():
        raise UsageError.of("fix-not-written.link", path=path, target=path.resolve())
    if not os.access(path, os.W_OK) or not os.access(path.parent, os.W_OK):
        raise UsageError.of("fix-not-written.locked", path=path)
    if path.read_bytes() != expected.data:
        raise UsageError.of("fix-not-written.changed", path=path)


def _beside(path: Path, data: bytes, spare: list[Path]) -> Path:
    """Write a file beside another, with its permissions."""
    opened, name = tempfile.mkstemp(prefix=f".{path.name}.devtrace-", dir=path.parent)
    spare.append(Path(name))
    with os.fdopen(opened, "wb") as file:
        file.write(data)
    shutil.copymode(path, name)
    return Path(name)


def _put(beside: Path, file: str) -> None:
    """Put a file in the place of another. One that has more names keeps them: it is written to."""
    if os.stat(file).st_nlink > 1:
        Path(file).write_bytes(beside.read_bytes())
    else:
        os.replace(beside, file)
