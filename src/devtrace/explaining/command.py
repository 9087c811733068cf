"""`devtrace explain`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from devtrace.cli.parser import Command
from devtrace.cli.reports import add_report, report_of
from devtrace.runtime.requirements import need_torch
from devtrace.words.catalogue import sentence
from devtrace.words.errors import FormatError

if TYPE_CHECKING:
    from devtrace.api.results import Report


def _add_to(commands: Any) -> None:
    add_report(commands, "explain", sentence("cli.explain-command"), _of_an_error, 1)


def _of_an_error(options: argparse.Namespace) -> Report:
    """Explain a saved traceback, or a trace."""
    try:
        return report_of(options)
    except FormatError:
        from devtrace.explaining.explain import explain_text

        need_torch()
        return explain_text(Path(options.files[0]).read_text(encoding="utf-8", errors="replace"))


COMMAND: Final = Command("report", _add_to)
