"""Reports of saved traces: what the commands that read files have in common."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from devtrace.cli.output import FOUND, print_line
from devtrace.cli.parser import Parser
from devtrace.contract.levels import FAIL_ON, read_level
from devtrace.runtime.whole_files import write_as_asked
from devtrace.words.catalogue import sentence
from devtrace.words.errors import UsageError

if TYPE_CHECKING:
    from devtrace.api.results import Report, Trace


def add_report(
    commands: Any, name: str, help: str, read: Callable[[argparse.Namespace], Report], files: str | int
) -> Parser:
    """Add a command that prints the report which `read` makes of so many files."""
    parser: Parser = commands.add_parser(name, help=help)
    parser.add_argument("files", metavar="FILE", nargs=files)
    parser.add_argument("--json", metavar="F", help=sentence("flag.json.program"))
    parser.add_argument("--sarif", metavar="F", help=sentence("flag.sarif.program"))
    add_gate(parser)
    parser.set_defaults(command=give_report, read=read)
    return parser


def add_gate(parser: Parser) -> None:
    """Add what a job of continuous integration asks for."""
    usual = argparse.SUPPRESS
    parser.add_argument(
        "--fail-on", metavar="|".join(FAIL_ON), type=read_level, default=usual, help=sentence("cli.fail-on")
    )
    parser.add_argument("--notes", action="store_true", default=usual, help=sentence("cli.notes"))


def report_of(options: argparse.Namespace) -> Report:
    """Return the report that the files hold; with `--again`, diagnose anew from the case that a file holds."""
    from devtrace.api.results import diagnose

    trace = loaded(options.files)
    if not vars(options).get("again"):
        return diagnose(replace(trace, case=None))
    if trace.case is None:
        raise UsageError.of("case-missing.file", file=options.files[0])
    return diagnose(trace)


def loaded(files: Sequence[str]) -> Trace:
    from devtrace.api.results import load

    try:
        return load(*files)
    except OSError as error:
        raise UsageError.of("file-unreadable", file=repr(error.filename), reason=error.strerror) from None


def write(file: str, what: str, write_to: Callable[[Path], object], stream: TextIO | None = None) -> int:
    write_as_asked(Path(file), write_to, what)
    print_line(sentence("cli.written", what=what, path=file), stream or sys.stdout)
    return 0


def give_report(options: argparse.Namespace) -> int:
    """Print a report in all forms asked for; where stdout is for a program, the text goes to stderr."""
    from devtrace.contract.code_scanning import project_folder
    from devtrace.contract.entries import entries_of
    from devtrace.contract.forms import TO_STDOUT, Forms
    from devtrace.report.text import terminal_width, text

    report, flags = options.read(options), vars(options)
    entries = entries_of(report.findings, flags.get("fail_on", "warning"))
    forms = Forms(report, entries, project_folder(Path.cwd()), "notes" in flags)
    stream = sys.stderr if options.json in TO_STDOUT else sys.stdout
    print_line(text(report, terminal_width(stream)), stream)
    for path, what, write_to in forms.files(options.json, options.sarif):
        write(path, sentence(what), write_to, stream)
    print_line(forms.annotations(), stream, but_not_empty=True)
    print_line(forms.line(options.json), sys.stdout, but_not_empty=True)
    return FOUND if any(entry.limit for entry in entries) else 0
