"""Runs a script or a module as Python itself would: its argv, `__main__`, path, exit code, traceback and signals.

A fresh `__main__` takes the place of ours, so that what the script pickles or asks of `sys.modules` is its own. An
exception is left to the interpreter, which prints it, runs what is registered at exit and picks the exit code; only our
frames are taken off.
"""

import importlib.machinery
import os
import shlex
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from types import CodeType, ModuleType, TracebackType
from typing import Any

from devtrace.runtime import overlay
from devtrace.runtime.tracebacks import hide_our_frames
from devtrace.words.errors import UsageError


def whole_file(file: str) -> Iterator[CodeType]:
    yield compile(overlay.read(file), file, "exec", dont_inherit=True)


@dataclass(frozen=True)
class Program:
    """A script (also a folder or zip with a `__main__.py`), or a module by name, and its arguments.

    `codes` yields what runs of a script's file, in order.
    """

    target: str
    arguments: tuple[str, ...] = ()
    is_module: bool = False
    codes: Callable[[str], Iterator[CodeType]] = whole_file

    @property
    def name(self) -> str:
        return self.target if self.is_module else os.path.basename(os.path.abspath(self.target))

    def __str__(self) -> str:
        """As it is written in a command."""
        return shlex.join([*(["-m"] if self.is_module else []), self.target, *self.arguments])

    def check(self) -> None:
        """Raise unless there is something to run."""
        if not self.is_module and not os.path.exists(self.target):
            raise UsageError.of("script-missing", script=repr(self.target), folder=os.getcwd())

    def prepare(self) -> tuple[ModuleType, Callable[[], None]]:
        """Make the script's `__main__`, argv and path. Returns the module and what runs it."""
        main = ModuleType("__main__")
        main.__dict__.update(__builtins__=sys.modules["builtins"], __annotations__={})
        sys.modules["__main__"] = main
        sys.argv = [self.target, *self.arguments]
        if self.is_module:
            _set_first_path(os.getcwd())
            return main, lambda: _run_module(self.target, rename=True)
        if os.path.isdir(self.target) or zipfile.is_zipfile(self.target):
            _set_first_path(self.target)
            return main, lambda: _run_module("__main__", rename=False)
        _set_first_path(os.path.dirname(os.path.realpath(self.target)))
        file = os.path.abspath(self.target)
        main.__dict__.update(__file__=file, __cached__=None)
        main.__loader__ = importlib.machinery.SourceFileLoader("__main__", file)
        return main, partial(self._run_script, file, main)

    def _run_script(self, file: str, main: ModuleType) -> None:
        for code in self.codes(file):
            exec(code, main.__dict__)


def _set_first_path(folder: str) -> None:
    """Our own first entry (the folder of the `devtrace` command, or the current one) becomes the script's."""
    if not sys.flags.safe_path:
        sys.path[0] = folder


def _run_module(name: str, *, rename: bool) -> None:
    """As `python -m` does: by the function that it calls itself, which is without a public name."""
    import runpy

    as_main: Callable[[str, bool], Any] = runpy._run_module_as_main  # type: ignore[attr-defined]
    as_main(name, rename)


def print_as_its_own(error: BaseException, *, later: bool = False) -> Callable[[], None]:
    """Let the interpreter print an exception as if we were neither below nor inside of it.

    `later`: it prints nothing, and what is returned prints it after all.
    """
    hook = sys.excepthook

    def print_it() -> None:
        hide_our_frames(error, below=__file__)
        hook(type(error), error, error.__traceback__)

    def print_exception(kind: type[BaseException], value: BaseException, traceback: TracebackType | None) -> None:
        if value is not error:
            hook(kind, value, traceback)
        elif not later:
            print_it()

    sys.excepthook = print_exception
    return print_it if later else lambda: None
