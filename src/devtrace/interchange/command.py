"""`devtrace diff`."""

import argparse
from pathlib import Path
from typing import Any, Final

from devtrace.cli import reports
from devtrace.cli.parser import Command
from devtrace.words.catalogue import sentence


def _add_to(commands: Any) -> None:
    diff = commands.add_parser("diff", help=sentence("cli.diff"))
    diff.add_argument("before", metavar="A")
    diff.add_argument("after", metavar="B")
    diff.set_defaults(command=_diff)


def _diff(options: argparse.Namespace) -> int:
    from devtrace.interchange.diff import diff

    before, after = options.before, options.after
    traces = reports.loaded([before]), reports.loaded([after])
    comparison = diff(*traces, names=(Path(before).name, Path(after).name))
    print(comparison)
    return 1 if comparison.worse else 0


COMMAND: Final = Command("check", _add_to)
