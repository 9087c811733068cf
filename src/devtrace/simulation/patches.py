"""Put names aside and put them back: every patched name is the original object again after `undo`."""

from __future__ import annotations

from typing import Any

import torch

_MISSING = object()


class Attribute(property):
    """What answers for an attribute of tensors in the place of torch's own descriptor."""

    # torch 2.11 asks every descriptor of torch.Tensor for it when torch._dynamo is imported.
    __objclass__ = torch.Tensor


class Patches:
    """What was changed, in order."""

    def __init__(self) -> None:
        self._changed: list[tuple[Any, Any, object]] = []

    def set(self, owner: Any, name: str, value: object) -> None:
        """Give a module's or class's name another value; a name that it only inherits is taken away again later."""
        self._changed.append((owner, name, vars(owner).get(name, _MISSING)))
        setattr(owner, name, value)

    def set_item(self, table: dict[Any, Any], key: object, value: object) -> None:
        """The same for a dictionary."""
        self._changed.append((table, key, table.get(key, _MISSING)))
        table[key] = value

    def undo(self) -> None:
        """Newest first, so that a name changed twice ends as it began."""
        while self._changed:
            owner, name, old = self._changed.pop()
            if isinstance(owner, dict):
                if old is _MISSING:
                    owner.pop(name, None)
                else:
                    owner[name] = old
            elif old is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, old)
