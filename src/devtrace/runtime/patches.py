"""Attributes of other people's classes that are replaced while recording, and put back whatever happens."""

from __future__ import annotations

from typing import Any

_MISSING = object()


class Patches:
    """Undone in reverse order. One that somebody else has patched over since is left: ours then only forwards."""

    def __init__(self) -> None:
        self._done: list[tuple[Any, str, Any, Any]] = []

    def set(self, owner: Any, name: str, value: Any) -> None:
        self._done.append((owner, name, owner.__dict__.get(name, _MISSING), value))
        setattr(owner, name, value)

    def undo(self) -> None:
        while self._done:
            owner, name, before, ours = self._done.pop()
            if owner.__dict__.get(name) is ours:
                if before is _MISSING:
                    delattr(owner, name)
                else:
                    setattr(owner, name, before)
