"""Changed files written all or none: after every check, each beside its file first, then put in its place.

Whatever interrupts the putting, the files that were already replaced get their old text back.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from devtrace.fixing.source_text import SourceText
from devtrace.words.errors import UsageError


def write_all(before: Mapping[str, SourceText], after: Mapping[str, SourceText]) -> None:
    """Write the new texts to files that still have the old ones."""
    for file in after:
        _check(Path(file), before[file])
    new = {file: _beside(Path(file), text.data) for file, text in after.items()}
    old: dict[str, Path] = {}
    try:
        for file in after:
            old[file] = _beside(Path(file), before[file].data)
        replaced: list[str] = []
        try:
            for file, path in new.items():
                replaced.append(file)
                os.replace(path, file)
        except BaseException:
            for file in replaced:
                os.replace(old[file], file)
            raise
    finally:
        for path in (*new.values(), *old.values()):
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


def _beside(path: Path, data: bytes) -> Path:
    target = path.with_name(f".{path.name}.devtrace-{os.getpid()}-{len(list(path.parent.glob('.*.devtrace-*')))}")
    target.write_bytes(data)
    shutil.copymode(path, target)
    return target
