"""A real IPython shell for tests, in this process, and what a cell put out."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from IPython.core.interactiveshell import ExecutionResult, InteractiveShell
from IPython.utils.capture import capture_output
from traitlets.config import Config

from devtrace.notebook import magic
from devtrace.notebook.cells import Traced, Tracing
from devtrace.recording.columns.process_history import history
from devtrace.report.mime import MIME_TYPE


@dataclass(frozen=True)
class Ran:
    """A cell that ran: IPython's result, the printed text and the displayed bundles."""

    result: ExecutionResult
    stdout: str
    stderr: str
    displayed: list[dict[str, Any]]

    @property
    def error(self) -> BaseException | None:
        return self.result.error_in_exec or self.result.error_before_exec

    @property
    def value(self) -> Any:
        """Return the value of the last expression."""
        return self.result.result

    @property
    def reports(self) -> list[dict[str, Any]]:
        """Return the bundles that carry a trace."""
        return [data for data in self.displayed if MIME_TYPE in data]

    @property
    def text(self) -> str:
        """All that was put out as text, in the order of its streams."""
        return "\n".join([self.stdout, self.stderr, *(data.get("text/plain", "") for data in self.displayed)])


class Shell:
    """An InteractiveShell as a test uses it."""

    def __init__(self, ip: InteractiveShell) -> None:
        self.ip = ip
        self.count: int | None = None  # of the cell that ran last

    def run(self, *lines: str, id: str | None = None) -> Ran:
        """Run one cell, the notebook's of this id."""
        with capture_output() as captured:
            result = self.ip.run_cell("\n".join(lines), store_history=True, cell_id=id)
        self.count = result.execution_count
        displayed = [output.data for output in captured.outputs]
        return Ran(result, captured.stdout, captured.stderr, displayed)

    @property
    def ns(self) -> dict[str, Any]:
        names: dict[str, Any] = self.ip.user_ns
        return names

    @property
    def tracing(self) -> Tracing:
        return magic.extensions[self.ip].tracing

    @property
    def traced(self) -> list[Traced]:
        return list(self.tracing.history)


@contextmanager
def new_shell(*cells: str) -> Iterator[Shell]:
    """A shell that has run some cells, without history on disk; in the end it and what it did are forgotten."""
    main, hooks = sys.modules["__main__"], (sys.displayhook, sys.excepthook)
    known, numbers = history.cells.copy(), history.numbers.copy()
    InteractiveShell.clear_instance()
    config = Config({"HistoryManager": {"enabled": False}, "InteractiveShell": {"colors": "nocolor"}})
    shell = Shell(InteractiveShell.instance(config=config))
    try:
        for cell in cells:
            shell.run(cell)
        yield shell
    finally:
        manager = shell.ip.extension_manager
        if manager is not None and "devtrace" in manager.loaded:
            manager.unload_extension("devtrace")
        InteractiveShell.clear_instance()
        history.cells, history.numbers = known, numbers
        sys.modules["__main__"], (sys.displayhook, sys.excepthook) = main, hooks
