"""What was written: files, their texts and whose they are, as a saved case has them; else this machine is asked.

with reading(Written({"<cell 3>": File("user", False, "x = y.cuda()\\n")})):
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
class Written:
    """`kinds`: of devices."""

    files: Mapping[str, File] = field(default_factory=dict)
    kinds: tuple[str, ...] = ()


_GIVEN: Final[ContextVar[Written | None]] = ContextVar("written", default=None)
given: Final = _GIVEN.get


def given_file(file: str) -> File | None:
    """Return what a case has of a file; None where this machine is asked."""
    written = given()
    return None if written is None else written.files.get(file, File())


@contextmanager
def reading(written: Written | None) -> Iterator[None]:
    """Read from a case; None: from this machine."""
    token = _GIVEN.set(written)
    try:
        yield
    finally:
        _GIVEN.reset(token)
