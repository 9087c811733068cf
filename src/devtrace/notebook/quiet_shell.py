"""An IPython shell that shows nothing: a notebook's cells run in it for their values and for what they print."""

from __future__ import annotations

from typing import Any

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from devtrace.notebook.panel.panel import Panel


class QuietShell(InteractiveShell):
    def enable_gui(self, gui: Any = None) -> None:
        """Nothing is drawn: `%matplotlib inline` finds no window to wait for."""


def new_shell() -> InteractiveShell:
    shell = QuietShell.instance(config=Config(HistoryManager={"enabled": False}))
    quieten(shell)
    return shell


def quieten(shell: InteractiveShell) -> None:
    """Let a shell show nothing, to no panel either; its last values go to `sys.stdout`, as in a terminal."""
    if shell.history_manager is not None:
        shell.history_manager.using_thread = False  # it prints, at any time, that it may not write
    for callbacks in shell.events.callbacks.values():
        callbacks[:] = [call for call in callbacks if not isinstance(getattr(call, "__self__", None), Panel)]
    shell.display_pub = CapturingDisplayPublisher()
    shell.displayhook = shell.display_trap.hook = DisplayHook(parent=shell, shell=shell)
    # For the text of an error it would read the files of all frames.
    shell.InteractiveTB.structured_traceback = lambda *error, **how: []  # type: ignore[method-assign]
    shell._showtraceback = lambda *parts: None  # type: ignore[method-assign]
