"""What is spoken of, where that is worded otherwise: of dtypes `dtype:mismatch.tensor`, not `mismatch.tensor`."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_CURRENT: Final[ContextVar[str]] = ContextVar("topic", default="")


def current() -> str:
    """Return what the keys of a topic's own sentences begin with; empty for none."""
    return _CURRENT.get()


@contextmanager
def speaking_of(topic: str) -> Iterator[None]:
    """Use a topic's sentences, where it has its own."""
    token = _CURRENT.set(f"{topic}:" if topic else "")
    try:
        yield
    finally:
        _CURRENT.reset(token)
