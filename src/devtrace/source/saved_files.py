"""Files of a saved case: their texts, and whose they are. Without one this machine is asked.

with reading(SavedFiles({"<cell 3>": File("user", False, "x = y.cuda()\\n")})):
    text_of("<cell 3>")
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

CodeOwner = Literal["user", "package", "hidden"]


class File(NamedTuple):
    """`is_torchs`: torch's or devtrace's own."""

    owner: CodeOwner = "hidden"
    is_torchs: bool = False
    text: str = ""


@dataclass(frozen=True)
class SavedFiles:
    """`kinds`: of devices."""

    by_name: Mapping[str, File] = field(default_factory=dict)
    kinds: tuple[str, ...] = ()


_IN_USE: Final[ContextVar[SavedFiles | None]] = ContextVar("files", default=None)
files_in_use: Final = _IN_USE.get


def saved_file(file: str) -> File | None:
    """Return what a case has of a file; None where this machine is asked."""
    files = files_in_use()
    return None if files is None else files.by_name.get(file, File())


@contextmanager
def reading(files: SavedFiles | None) -> Iterator[None]:
    """Read from a case; None: from this machine."""
    token = _IN_USE.set(files)
    try:
        yield
    finally:
        _IN_USE.reset(token)
