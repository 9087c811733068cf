"""Runs a script or a module as Python itself would: its argv, `__main__`, path, exit code, traceback and signals.

A fresh `__main__` takes the place of ours, so that what the script pickles or asks of `sys.modules` is its own. An
exception is left to the interpreter, which prints it, runs what is registered at exit and picks the exit code; only our
frames are taken off.
"""

from __future__ import annotations

import importlib.machinery
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

from .errors import UsageError


@dataclass(frozen=True)
class Program:
    """What to run: a script (also a folder or zip with a `__main__.py`), or a module by name, and its arguments."""

    target: str
    arguments: tuple[str, ...] = ()
    is_module: bool = False

    @property
    def name(self) -> str:
        return self.target if self.is_module else os.path.basename(os.path.abspath(self.target))

    def check(self) -> None:
        """Raise unless there is something to run."""
        if not self.is_module and not os.path.exists(self.target):
            raise UsageError(
                "script-missing",
                f"{self.target!r}, which is not there",
                "devtrace run takes a script, or -m and a module",
                f"look where it is from {os.getcwd()}",
            )

    def prepare(self) -> tuple[ModuleType, Callable[[], None]]:
        """Make the script's `__main__`, argv and path. Returns the module and what runs it."""
        main = ModuleType("__main__")
        main.__dict__.update(__builtins__=sys.modules["builtins"], __annotations__={})
        sys.modules["__main__"] = main
        sys.argv = [self.target, *self.arguments]
        if self.is_module:
            _set_first_path(os.getcwd())
            return main, lambda: _run_module(self.target, rename=True)
        if os.path.isdir(self.target) or not _is_source(self.target):
            _set_first_path(self.target)
            return main, lambda: _run_module("__main__", rename=False)
        _set_first_path(os.path.dirname(os.path.realpath(self.target)))
        return main, _script(self.target, main)


def _is_source(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(4) != b"PK\x03\x04"


def _set_first_path(folder: str) -> None:
    """Our own first entry (the folder of the `devtrace` command, or the current one) becomes the script's."""
    if not sys.flags.safe_path:
        sys.path[0] = folder


def _script(path: str, main: ModuleType) -> Callable[[], None]:
    file = os.path.abspath(path)
    main.__dict__.update(__file__=file, __cached__=None)
    main.__loader__ = importlib.machinery.SourceFileLoader("__main__", file)

    def run() -> None:
        exec(compile(Path(path).read_bytes(), file, "exec", dont_inherit=True), main.__dict__)

    return run


def _run_module(name: str, *, rename: bool) -> None:
    """As `python -m` does: by the function that it calls itself, which is without a public name."""
    import runpy

    as_main: Callable[[str, bool], Any] = runpy._run_module_as_main  # type: ignore[attr-defined]
    as_main(name, rename)


def hide_our_frames(error: BaseException) -> None:
    """Let the interpreter print an exception as if we were neither below nor inside of it."""
    hook = sys.excepthook

    def print_exception(kind: type[BaseException], value: BaseException, traceback: TracebackType | None) -> None:
        if value is error:
            for each in _chain(error):
                each.__traceback__ = _without_us(each.__traceback__)
            traceback = error.__traceback__
        hook(kind, value, traceback)

    sys.excepthook = print_exception


def _chain(error: BaseException) -> list[BaseException]:
    """An exception and those that it came from or arose while handling."""
    found: list[BaseException] = []
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop()
        if each is not None and all(each is not other for other in found):
            found.append(each)
            waiting += [each.__cause__, each.__context__]
    return found


def _without_us(traceback: TracebackType | None) -> TracebackType | None:
    """The entries above the frame that ran the program, less those of the recorder between them."""
    entries = []
    while traceback is not None:
        entries.append(traceback)
        if traceback.tb_frame.f_code.co_filename == __file__:
            entries.clear()
        traceback = traceback.tb_next
    ours = os.path.dirname(__file__) + os.sep
    kept = [entry for entry in entries if not entry.tb_frame.f_code.co_filename.startswith(ours)]
    for entry, following in zip(kept, [*kept[1:], None], strict=False):
        entry.tb_next = following
    return kept[0] if kept else None


def after_import(name: str, then: Callable[[], None]) -> None:
    """Call `then` as soon as a module has been imported for the first time; now, if it has been."""
    if name in sys.modules:
        then()
        return
    sys.meta_path.insert(0, _After(name, then))


class _After:
    """A finder that finds nothing, but adds to the loader that the others find for one module."""

    def __init__(self, name: str, then: Callable[[], None]) -> None:
        self.name = name
        self.then = then

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> Any:
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            self._extend(spec.loader)
        return spec

    def _extend(self, loader: Any) -> None:
        load = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            del loader.exec_module
            load(module)
            self.then()

        loader.exec_module = exec_module
