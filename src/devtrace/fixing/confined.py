"""Holds a trial to reading: what it writes lies in a folder of its own, laid over the user's files.

    confine(folder)         # from here on, in this process and in what it starts
    torch.save(net.state_dict(), "best.pt")     # goes below the folder
    torch.load("best.pt")                       # comes from there

Python's own ways of writing are led there. The system refuses all others where it can (Landlock: a file of the user's,
a connection), and says so as it does of a file without permission; elsewhere an audit hook refuses what Python sees.
"""

from __future__ import annotations

import ctypes
import io
import os
import shutil
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from errno import EACCES
from functools import partial
from types import ModuleType
from typing import Any, Final

_CREATE, _ADD, _RESTRICT = 444, 445, 446
"""Numbers of Landlock's calls, the same on every architecture."""
_WRITES: Final = sum(1 << bit for bit in (1, 4, 5, 6, 7, 8, 9, 10, 11, 12))
"""Write a file, remove a folder or a file, make a device, folder, file, socket, pipe, block device, link."""
_TRUNCATES, _CONNECTS = 1 << 14, 3
"""Known from the third version on, and from the fourth: to bind a port, and to connect to one."""
_NO_NEW_PRIVILEGES: Final = 38
_REFUSED: Final = ("socket.connect", "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "sqlite3.connect")
_CHANGES: Final = ("open", "os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.truncate", "os.link", "os.symlink")
_TO_WRITE: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


_laid: Final[list[_Laid]] = []


def confine(folder: str) -> None:
    """Let this process write below a folder alone."""
    laid = _Laid(folder)
    laid.install()
    _laid.append(laid)
    is_held = _hold(folder)
    sys.addaudithook(partial(_refuse, laid, () if is_held else _CHANGES))


def branch() -> None:
    """Let what this fork of a confined process writes be its own: the others read what was there before."""
    for laid in _laid:
        laid.branch()


def _hold(folder: str) -> bool:
    """Ask the system to refuse each other way; return whether it does."""
    libc = ctypes.CDLL(None, use_errno=True)
    version = libc.syscall(_CREATE, None, 0, 1) if sys.platform == "linux" else -1
    if version < 1:
        return False
    writes = _WRITES | (_TRUNCATES if version >= 3 else 0)
    rights = struct.pack("QQ", writes, _CONNECTS) if version >= 4 else struct.pack("Q", writes)
    rules = libc.syscall(_CREATE, rights, len(rights), 0)
    if rules < 0:
        return False
    for place in (folder, "/dev"):
        opened = os.open(place, os.O_PATH)
        libc.syscall(_ADD, rules, 1, struct.pack("=Qi", writes, opened), 0)
        os.close(opened)
    libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    refused = libc.syscall(_RESTRICT, rules, 0)
    os.close(rules)
    return not refused


def _refuse(laid: _Laid, changes: tuple[str, ...], event: str, details: tuple[Any, ...]) -> None:
    """Refuse what is neither a file of Python's nor the system's to refuse: to talk to anybody, to start a program."""
    if event == "socket.connect" and isinstance(details[1], str | bytes) and laid.is_free(details[1]):
        return  # to a process of its own: a DataLoader's worker
    is_read = event == "open" and not (details[2] or 0) & _TO_WRITE
    if event in _REFUSED or (event in changes and not is_read and not laid.is_free(details[0])):
        about = details[event == "socket.connect"] if details else event
        raise PermissionError(EACCES, os.strerror(EACCES), str(about))


class _Laid:
    """A folder laid over all others: what was written is read there, what was removed is gone."""

    def __init__(self, folder: str) -> None:
        self._base = os.path.realpath(folder)
        self.folder = os.path.join(self._base, "laid")
        self._gone: set[str] = set()

    def branch(self) -> None:
        before, self.folder = self.folder, os.path.join(self._base, str(os.getpid()))
        if os.path.exists(before):
            shutil.copytree(before, self.folder)

    def install(self) -> None:
        """Lead Python's own ways of writing there, under each name that a module has for one."""
        torch: Any = sys.modules["torch"]
        leads: dict[Any, Callable[..., Any]] = {
            io.open: self._open, os.remove: self._remove, os.unlink: self._remove, os.rmdir: self._remove,
            os.rename: self._move, os.replace: self._move, os.mkdir: self._make, os.stat: self._read,
            os.chmod: self._touch, os.utime: self._touch, torch.save: self._save,
        }  # fmt: skip
        led = {id(own): (own, partial(lead, own)) for own, lead in leads.items()}
        modules: list[Any] = [*sys.modules.values()]  # a program may put anything there
        for module in modules:
            names = vars(module) if isinstance(module, ModuleType) else {}
            names.update({name: led[id(value)][1] for name, value in list(names.items()) if id(value) in led})

    def _real(self, path: Any) -> str:
        return os.path.realpath(os.fsdecode(path))

    def is_free(self, path: Any) -> bool:
        """Return whether a path is no file of the user's: an open one, a device, or what is below the folder."""
        return not isinstance(path, str | bytes | os.PathLike) or self._real(path).startswith((self._base, "/dev/"))

    def _place(self, path: Any) -> str:
        """Return where a file lies for this process to write."""
        if self.is_free(path):
            return str(os.fspath(path))
        real = self._real(path)
        place = self.folder + real
        os.makedirs(os.path.dirname(place), exist_ok=True)
        return place

    def _seen(self, path: Any) -> Any:
        """Return where a file is to be read."""
        if self.is_free(path):
            return path
        real = self._real(path)
        if os.path.lexists(self.folder + real):
            return self.folder + real
        if real in self._gone:
            raise FileNotFoundError(2, os.strerror(2), os.fsdecode(path))
        return path

    def _open(self, own: Callable[..., Any], file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        if self.is_free(file) or not set(mode) & set("wax+"):
            return own(self._seen(file), mode, *args, **kwargs)
        place, seen = self._place(file), file
        with suppress(FileNotFoundError):
            seen = self._seen(file)
            if "w" not in mode and seen != place:
                shutil.copyfile(seen, place)
        return own(place, mode, *args, **kwargs)

    def _remove(self, own: Callable[..., Any], path: Any, *args: Any, **kwargs: Any) -> None:
        if self.is_free(path):
            own(path, *args, **kwargs)
            return
        os.stat(path)
        with suppress(FileNotFoundError):
            own(self.folder + self._real(path), *args, **kwargs)
        self._gone.add(self._real(path))

    def _move(self, own: Callable[..., Any], path: Any, to: Any, *args: Any, **kwargs: Any) -> None:
        if self.is_free(path):
            own(path, self._place(to), *args, **kwargs)
            return
        shutil.copyfile(self._seen(path), self._place(to))
        os.remove(path)

    def _make(self, own: Callable[..., Any], path: Any, *args: Any, **kwargs: Any) -> None:
        if not self.is_free(path) and os.path.exists(path):
            raise FileExistsError(17, os.strerror(17), os.fsdecode(path))
        own(self._place(path), *args, **kwargs)

    def _read(self, own: Callable[..., Any], path: Any, *args: Any, **kwargs: Any) -> Any:
        return own(self._seen(path), *args, **kwargs)

    def _touch(self, own: Callable[..., Any], path: Any, *args: Any, **kwargs: Any) -> None:
        """Give a mode or times to what was written; a file of the user's keeps its own."""
        if (seen := self._seen(path)) is not path or self.is_free(path):
            own(seen, *args, **kwargs)

    def _save(self, own: Callable[..., Any], value: Any, f: Any, *args: Any, **kwargs: Any) -> None:
        """Write as `torch.save`, which opens a path by itself."""
        own(value, self._place(f) if isinstance(f, str | os.PathLike) else f, *args, **kwargs)
