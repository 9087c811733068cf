"""Put names aside and put them back: every patched name is the original object again after `undo`."""

from __future__ import annotations

from typing import Any

_MISSING = object()


class Patches:
    """What was changed, in order."""

    def __init__(self) -> None:
        self._changed: list[tuple[Any, str, object]] = []

    def set(self, owner: Any, name: str, value: object) -> None:
        """Give a module's or class's name another value; a name that it only inherits is taken away again later."""
        self._changed.append((owner, name, vars(owner).get(name, _MISSING)))
        setattr(owner, name, value)

    def undo(self) -> None:
        """Newest first, so that a name changed twice ends as it began."""
        while self._changed:
            owner, name, old = self._changed.pop()
            if old is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, old)
