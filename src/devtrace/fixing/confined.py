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


_shadows: Final[list[_ShadowFolder]] = []


def confine(folder: str) -> None:
    """Let this process write nowhere but below a folder."""
    shadow = _ShadowFolder(folder)
    shadow.install()
    _shadows.append(shadow)
    has_landlock = _hold(folder)
    sys.addaudithook(partial(_refuse_event, shadow, () if has_landlock else _CHANGES))


def branch() -> None:
    """Give this fork of a confined process a copy of what was written: other processes do not see its writes."""
    for shadow in _shadows:
        shadow.branch()


def _hold(folder: str) -> bool:
    """Let Landlock refuse writes outside of a folder, and connections; return whether this system can."""
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
        descriptor = os.open(place, os.O_PATH)
        libc.syscall(_ADD, rules, 1, struct.pack("=Qi", writes, descriptor), 0)
        os.close(descriptor)
    libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    status = libc.syscall(_RESTRICT, rules, 0)
    os.close(rules)
    return not status


def _refuse_event(shadow: _ShadowFolder, file_events: tuple[str, ...], event: str, arguments: tuple[Any, ...]) -> None:
    """Raise (an audit hook) if a trial connects to anybody, starts a program, or does an event of `file_events`."""
    if event == "socket.connect" and isinstance(arguments[1], str | bytes) and shadow.is_allowed(arguments[1]):
        return  # to a process of its own: a DataLoader's worker
    is_read = event == "open" and not (arguments[2] or 0) & _TO_WRITE
    if event in _REFUSED or (event in file_events and not is_read and not shadow.is_allowed(arguments[0])):
        target = arguments[event == "socket.connect"] if arguments else event  # first comes the socket
        raise PermissionError(EACCES, os.strerror(EACCES), str(target))


class _ShadowFolder:
    """A folder laid over all others: what a trial wrote is read from it, what it removed seems gone."""

    def __init__(self, folder: str) -> None:
        self._base = os.path.realpath(folder)
        self.folder = os.path.join(self._base, "laid")
        self._removed: set[str] = set()

    def branch(self) -> None:
        folder_before, self.folder = self.folder, os.path.join(self._base, str(os.getpid()))
        if os.path.exists(folder_before):
            shutil.copytree(folder_before, self.folder)

    def install(self) -> None:
        """Replace Python's functions that write files, under each name that a module has for one."""
        torch: Any = sys.modules["torch"]
        replacements: dict[Any, Callable[..., Any]] = {
            io.open: self._open, os.remove: self._remove, os.unlink: self._remove, os.rmdir: self._remove,
            os.rename: self._move, os.replace: self._move, os.mkdir: self._mkdir, os.stat: self._stat,
            os.chmod: self._touch, os.utime: self._touch, torch.save: self._save,
        }  # fmt: skip
        by_id = {id(old): (old, partial(new, old)) for old, new in replacements.items()}
        modules: list[Any] = [*sys.modules.values()]  # a program may put anything there
        for module in modules:
            names = vars(module) if isinstance(module, ModuleType) else {}
            names.update({name: by_id[id(value)][1] for name, value in list(names.items()) if id(value) in by_id})

    def _real(self, path: Any) -> str:
        return os.path.realpath(os.fsdecode(path))

    def is_allowed(self, path: Any) -> bool:
        """Return whether a trial may write to a path itself: an open file, a device, or what is below the folder."""
        return not isinstance(path, str | bytes | os.PathLike) or self._real(path).startswith((self._base, "/dev/"))

    def _place_to_write(self, path: Any) -> str:
        """Return where this process writes a file: the path itself if that is allowed, else in the shadow folder."""
        if self.is_allowed(path):
            return str(os.fspath(path))
        real_path = self._real(path)
        place = self.folder + real_path
        os.makedirs(os.path.dirname(place), exist_ok=True)
        return place

    def _place_to_read(self, path: Any) -> Any:
        """Return where this process reads a file: in the shadow folder if it wrote it, else the path itself."""
        if self.is_allowed(path):
            return path
        real_path = self._real(path)
        if os.path.lexists(self.folder + real_path):
            return self.folder + real_path
        if real_path in self._removed:
            raise FileNotFoundError(2, os.strerror(2), os.fsdecode(path))
        return path

    def _open(self, original: Callable[..., Any], file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        if self.is_allowed(file) or not set(mode) & set("wax+"):
            return original(self._place_to_read(file), mode, *args, **kwargs)
        target, source = self._place_to_write(file), file
        with suppress(FileNotFoundError):
            source = self._place_to_read(file)
            if "w" not in mode and source != target:
                shutil.copyfile(source, target)
        return original(target, mode, *args, **kwargs)

    def _remove(self, original: Callable[..., Any], path: Any, *args: Any, **kwargs: Any) -> None:
        if self.is_allowed(path):
            original(path, *args, **kwargs)
            return
        os.stat(path)  # raises if there is none
        with suppress(FileNotFoundError):
            original(self.folder + self._real(path), *args, **kwargs)
        self._removed.add(self._real(path))

    def _move(self, original: Callable[..., Any], path: Any, to: Any, *args: Any, **kwargs: Any) -> None:
        if self.is_allowed(path):
            original(path, self._place_to_write(to), *args, **kwargs)
            return
        shutil.copyfile(self._place_to_read(path), self._place_to_write(to))
        os.remove(path)

    def _mkdir(self, original: Callable[..., Any], path: Any, *args: Any, **kwargs: Any) -> None:
        if not self.is_allowed(path) and os.path.exists(path):
            raise FileExistsError(17, os.strerror(17), os.fsdecode(path))
        original(self._place_to_write(path), *args, **kwargs)

    def _stat(self, original: Callable[..., Any], path: Any, *args: Any, **kwargs: Any) -> Any:
        return original(self._place_to_read(path), *args, **kwargs)

    def _touch(self, original: Callable[..., Any], path: Any, *args: Any, **kwargs: Any) -> None:
        """Set the mode or times of a file that this process wrote; a file of the user's keeps its own."""
        if (place := self._place_to_read(path)) is not path or self.is_allowed(path):
            original(place, *args, **kwargs)

    def _save(self, original: Callable[..., Any], value: Any, f: Any, *args: Any, **kwargs: Any) -> None:
        """Write as `torch.save`, which opens a path by itself."""
        original(value, self._place_to_write(f) if isinstance(f, str | os.PathLike) else f, *args, **kwargs)
