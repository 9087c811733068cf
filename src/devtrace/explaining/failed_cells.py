"""Errors of cells that nobody traced: a device error gets its finding below the traceback, anything else nothing."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from devtrace.explaining.installation import report_on
from devtrace.notebook.cells import Cell, Traced, Tracing
from devtrace.notebook.companion import Companion, Magic, Message, Screen, show
from devtrace.notebook.left_on_devices import hint_without_cuda
from devtrace.runtime.tracebacks import last_shown
from devtrace.words.catalogue import sentence
from devtrace.words.errors import UsageError

if TYPE_CHECKING:
    from devtrace.api.results import Report

MARK: Final = "untraced"
"""The key of a bundle that names the cell to trace; the page draws no timeline and a button for it."""
VARIABLE: Final = "DEVTRACE_EXPLAIN"


class Explainer(Companion):
    """Explains errors in one notebook session. It keeps no error: the last one is where Python keeps it."""

    magic = Magic("command.explain", "[on | off]", offers=("on", "off"), after="language")

    def __init__(self, tracing: Tracing) -> None:
        super().__init__(tracing)
        self.on = os.environ.get(VARIABLE, "on") != "off"  # for cells that are not traced
        self._last_cell = Cell("", "")

    def cell_failed(self, cell: Cell, error: BaseException, screen: Screen) -> None:
        """Show the finding of a cell's error, if there is one, and keep it with the traces."""
        self._last_cell = cell
        if not self.on:
            return
        hint = hint_without_cuda(error)
        if hint:
            sys.stdout.write(sentence("report.note", note=hint) + "\n")
        report = _report_of_cell(error, cell)
        if report is not None:
            show(report, screen, timeline=False, beside={MARK: {"cell": cell.id}})
            self.tracing.keep(Traced("", cell, report.trace, report))

    def command(self, argument: str, screen: Screen) -> None:
        """Do what `%devtrace explain [on | off]` asks for."""
        if argument in ("on", "off"):
            self.on = argument == "on"
            sys.stdout.write(sentence("magic.explains" if argument == "on" else "magic.explains-not") + "\n")
            return
        if argument:
            raise UsageError.of("command-argument", given=f"%devtrace explain {argument}", form="explain [on | off]")
        error = last_shown()
        report = _report_of_cell(error, self._last_cell)
        if report is None:
            name = type(error).__name__ if error is not None else ""
            raise UsageError.of("nothing-to-explain.other" if name else "nothing-to-explain", error=name)
        show(report, screen, timeline=False, beside={MARK: {"cell": self._last_cell.id}})

    def answer(self, message: Message) -> bool:
        if message["kind"] != "explain":
            return False
        self.on = message["on"]
        return True


def _report_of_cell(error: BaseException | None, cell: Cell) -> Report | None:
    """Return the report of a device error, None where there is nothing to say of it."""
    report = report_on(error)
    return replace(report, trace=replace(report.trace, title=cell.label)) if report is not None else None
