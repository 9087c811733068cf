"""`devtrace.install()`: every device error of this process that nobody catches explains itself below its traceback.

    devtrace.install()        # in a script, a service, or a start-up file of Python's or IPython's
    devtrace.uninstall()

Module and optimizer hooks come with torch's import. The hooks of Python for errors (`sys.excepthook`, that of threads,
that of asyncio) are kept and called first. An error that is not about devices is theirs alone.
"""

from __future__ import annotations

import sys
import threading
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from devtrace.api.module_watch import watch_modules
from devtrace.cli.output import print_line
from devtrace.runtime.import_hook import ImportWatcher
from devtrace.runtime.patches import Call, Patches
from devtrace.runtime.requirements import need_torch, sentence_of_fault
from devtrace.runtime.tracebacks import hide_our_frames
from devtrace.runtime.watching import ERRORS
from devtrace.words.catalogue import sentence

if TYPE_CHECKING:
    from devtrace.api.results import Report

_installed: Final = ExitStack()
_on: Final = threading.Event()


def install() -> None:
    """Explain, below the traceback, each device error that ends this program, a thread or an asyncio task."""
    need_torch()
    shell = _shell()
    if shell is not None:
        import devtrace

        devtrace.load_ipython_extension(shell)
    elif not _on.is_set():
        _on.set()
        _installed.callback(_on.clear)
        _installed.callback(watch_modules())
        _chain_hooks(_installed)


def uninstall() -> None:
    shell = _shell()
    if shell is not None:
        import devtrace

        devtrace.unload_ipython_extension(shell)
    _installed.close()


def report_on(error: BaseException | None) -> Report | None:
    """Return the report on a device error, if it finds something; None for any other. Imports nothing without torch."""
    if error is None or "torch" not in sys.modules:
        return None
    from devtrace.explaining.explain import explain

    report = explain(error)
    return report if report.findings else None


def _chain_hooks(undo: ExitStack) -> None:
    patches = Patches()
    undo.callback(patches.undo)
    patches.wrap(sys, "excepthook", _excepthook)
    patches.wrap(threading, "excepthook", _threads_hook)

    def chain_asyncio() -> None:
        with ERRORS:
            from asyncio import BaseEventLoop

            patches.wrap(BaseEventLoop, "call_exception_handler", _call_exception_handler)

    watcher = ImportWatcher("asyncio")
    undo.callback(watcher.cancel, chain_asyncio)
    watcher.call_when_imported(chain_asyncio)


def _excepthook(
    former: Call, kind: type[BaseException], error: BaseException | None, traceback: TracebackType | None
) -> None:
    if _on.is_set() and error is not None and traceback is error.__traceback__:
        _hide_our_frames(error)
        traceback = error.__traceback__
    former(kind, error, traceback)
    _print_report(error)


def _threads_hook(former: Call, args: Any) -> None:
    error = args.exc_value
    if _on.is_set() and error is not None:
        _hide_our_frames(error)
        args = type(args)((args.exc_type, error, error.__traceback__, args.thread))
    former(args)
    _print_report(error)


def _call_exception_handler(former: Call, self: Any, context: dict[str, Any]) -> None:
    error = context.get("exception")
    if _on.is_set() and isinstance(error, BaseException):
        _hide_our_frames(error)
    former(self, context)
    _print_report(error)


def _hide_our_frames(error: BaseException) -> None:
    """Take the frames of devtrace's hooks, such as that around `.to()`, out of the traceback."""
    with ERRORS:
        hide_our_frames(error)


def _print_report(error: BaseException | None) -> None:
    """Print the report of a device error below its traceback. Nothing that fails here hides the error itself."""
    if not _on.is_set() or sys.stderr is None:
        return
    try:
        report = report_on(error)
        if report is not None:
            print_line(f"\n{sentence('explained.untraced')}\n\n{report.text}")
    except Exception as fault:  # noqa: BLE001 (a fault of ours is a line)
        with suppress(Exception):
            print_line(sentence_of_fault("run.not-explained", fault))


def _shell() -> Any:
    """Return the IPython shell that runs this, None in plain Python."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None
