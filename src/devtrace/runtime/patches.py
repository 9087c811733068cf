"""Replaces attributes and dictionary entries of other packages, and puts them back."""

import threading
from collections.abc import Callable
from contextlib import ExitStack
from functools import wraps
from typing import Any, Final

from devtrace.runtime.tracebacks import leave

MISSING: Final = object()
Call = Callable[..., Any]


class Patches:
    """Replaced names, in order. `undo` puts them back newest first, so a name patched twice ends as it began.

    A name that somebody else has patched over since is left: ours then only forwards. With `always_restore` it is put
    back all the same: a simulated device must not answer after its simulation.
    """

    def __init__(self, *, always_restore: bool = False) -> None:
        self.replaced: list[tuple[Any, Any, object, object]] = []
        self._always_restore = always_restore

    def set(self, owner: Any, name: str, value: object) -> None:
        """Replace an attribute of a module or class; one that it only inherits is deleted again later."""
        self.replaced.append((owner, name, vars(owner).get(name, MISSING), value))
        setattr(owner, name, value)

    def wrap(self, owner: Any, name: str, call: Call, *, leaves: bool = False) -> None:
        """Let `call(function, *args, **kwargs)` answer for a function that has a name."""
        self.set(owner, name, around(getattr(owner, name), call, leaves=leaves))

    def set_item(self, table: dict[Any, Any], key: object, value: object) -> None:
        self.replaced.append((table, key, table.get(key, MISSING), value))
        table[key] = value

    def undo(self, left: int = 0) -> None:
        """Put names back, but for the first `left` that were replaced."""
        while len(self.replaced) > left:
            owner, name, before, ours = self.replaced.pop()
            entries = owner if isinstance(owner, dict) else vars(owner)
            if not self._always_restore and entries.get(name) is not ours:
                continue
            if isinstance(owner, dict):
                owner[name] = before
                if before is MISSING:
                    del owner[name]
            elif before is MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, before)


def around(function: Any, call: Call, *, leaves: bool = False) -> Call:
    """Return what stands for a function and asks `call` with it. `leaves`: an error that comes by loses our frames."""

    @wraps(function)
    def answer(*args: Any, **kwargs: Any) -> Any:
        try:
            return call(function, *args, **kwargs)
        except BaseException as error:
            if leaves:
                leave(error)
            raise

    return answer


class Depth(threading.local):
    """Number of calls of one kind that this thread is in: each is a block, `with depth:`."""

    now = 0

    def __enter__(self) -> None:
        self.now += 1

    def __exit__(self, *_: object) -> None:
        self.now -= 1


class SharedInstallation:
    """An installation that several users need at once: made for the first of them, undone after the last."""

    def __init__(self, install: Callable[[ExitStack], None]) -> None:
        self._install = install
        self._undo = ExitStack()
        self._users = 0

    def begin(self) -> None:
        self._users += 1
        if self._users == 1:
            self._install(self._undo)

    def end(self) -> None:
        self._users -= 1
        if self._users == 0:
            self._undo.close()
