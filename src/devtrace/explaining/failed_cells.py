"""Errors of cells that nobody traced: a device error gets its finding below the traceback, anything else nothing."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from devtrace.explaining.installation import report_on
from devtrace.notebook.cells import Cell, Traced, Tracing
from devtrace.notebook.left_on_devices import hint_without_cuda
from devtrace.runtime.tracebacks import last_shown
from devtrace.words.catalogue import sentence
from devtrace.words.errors import UsageError

if TYPE_CHECKING:
    from devtrace.api.results import Report

MARK: Final = "untraced"
"""The key of a bundle that names the cell to trace; the page draws no timeline and a button for it."""


class Screen(Protocol):
    """Takes outputs: a notebook's cell or a terminal."""

    @property
    def text_only(self) -> bool: ...

    def publish(self, data: dict[str, Any], metadata: dict[str, Any]) -> None: ...


class Explainer:
    """Explains errors in one notebook session. It keeps no error: the last one is where Python keeps it."""

    def __init__(self, tracing: Tracing, screen: Screen) -> None:
        self._tracing = tracing
        self._screen = screen
        self._last_cell = Cell("", "")

    def cell_failed(self, cell: Cell, error: BaseException) -> None:
        """Show the finding of a cell's error, if there is one, and keep it with the traces."""
        self._last_cell = cell
        if not self._tracing.explaining:
            return
        hint = hint_without_cuda(error)
        if hint:
            sys.stdout.write(sentence("report.note", note=hint) + "\n")
        report = _explained(error, cell)
        if report is not None:
            self._show(report, cell)
            self._tracing.keep(Traced("", cell, report.trace, report))

    def command(self, argument: str) -> None:
        """Do what `%devtrace explain [on | off]` asks for."""
        if argument in ("on", "off"):
            self._tracing.explaining = argument == "on"
            sys.stdout.write(sentence("magic.explains" if argument == "on" else "magic.explains-not") + "\n")
            return
        if argument:
            raise UsageError.of("command-argument", given=f"%devtrace explain {argument}", form="explain [on | off]")
        self._again()

    def _again(self) -> None:
        error = last_shown()
        report = _explained(error, self._last_cell)
        if report is None:
            given = type(error).__name__ if error is not None else ""
            raise UsageError.of("nothing-to-explain.other" if given else "nothing-to-explain", error=given)
        self._show(report, self._last_cell)

    def _show(self, report: Report, cell: Cell) -> None:
        if self._screen.text_only:
            self._screen.publish({"text/plain": report.text}, {})
            return
        from devtrace.report.mime import MIME_TYPE, mime_bundle

        data, metadata = mime_bundle(report, timeline=False)
        data[MIME_TYPE] = {**data[MIME_TYPE], MARK: {"cell": cell.id}}
        self._screen.publish(data, metadata)


def _explained(error: BaseException | None, cell: Cell) -> Report | None:
    """Return the report of a device error, None where there is nothing to say of it."""
    report = report_on(error)
    return replace(report, trace=replace(report.trace, title=cell.label)) if report is not None else None
