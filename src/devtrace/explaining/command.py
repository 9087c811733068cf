"""`devtrace explain`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from devtrace.cli.output import print_line
from devtrace.cli.parser import Command
from devtrace.cli.reports import add_report, give_report, report_of
from devtrace.runtime.requirements import need_torch
from devtrace.words import language
from devtrace.words.catalogue import sentence
from devtrace.words.errors import FormatError

if TYPE_CHECKING:
    from devtrace.api.results import Report


def _add_to(commands: Any) -> None:
    parser = add_report(commands, "explain", sentence("cli.explain-command"), _report_of_file, 1)
    parser.set_defaults(command=_explain)


def _explain(options: argparse.Namespace) -> int:
    """Print the page of a rule or a cause; report on anything else, and on a file of that name, as a file."""
    name = options.files[0]
    pages = json.loads(Path(__file__).with_name("pages.json").read_text(encoding="utf-8"))[language.current()]
    if name not in pages or Path(name).exists():
        return give_report(options)
    print_line(pages[name], sys.stdout)
    return 0


def _report_of_file(options: argparse.Namespace) -> Report:
    """Return the report of a trace, or that of a saved traceback."""
    try:
        return report_of(options)
    except FormatError:
        from devtrace.explaining.explain import explain_text

        need_torch()
        return explain_text(Path(options.files[0]).read_text(encoding="utf-8", errors="replace"))


COMMAND: Final = Command("report", _add_to)
