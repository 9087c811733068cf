"""The command line: run a program under devtrace, look at its trace, compare two, check the environment."""

from __future__ import annotations

import argparse
import sys
import tempfile
import webbrowser
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from devtrace.api.options import FLAGS, Options
from devtrace.cli import fix, misplaced
from devtrace.cli.launch import Launch
from devtrace.cli.parser import Parser
from devtrace.cli.run_program import Program
from devtrace.cli.run_untraced import run_untraced
from devtrace.runtime import overlay
from devtrace.runtime.requirements import own_version
from devtrace.runtime.whole_files import write_as_asked
from devtrace.words.catalogue import sentence
from devtrace.words.errors import DevtraceError, FormatError, UsageError

if TYPE_CHECKING:
    from devtrace.api.results import Trace

USAGE = 2
"""The exit code for a command that cannot be followed, as Python's own."""
_PROGRAM_FLAGS = [flag for flag in FLAGS if flag.for_programs]


def main(arguments: Sequence[str] | None = None) -> int:
    try:
        options = _parser().parse_args(arguments)
        code: int = options.command(options)
    except DevtraceError as error:
        print(sentence("run.line", text=error), file=sys.stderr)
        return USAGE
    return code


def _parser() -> Parser:
    parser = Parser(prog="devtrace", description=sentence("cli.description"))
    own = f"devtrace {own_version()}"
    parser.add_argument("--version", action="version", version=own, help=sentence("cli.version"))
    parser.set_defaults(command=lambda options: _help(parser))
    commands = parser.add_subparsers(metavar="COMMAND")
    _add_run(commands)
    fix.add_to(commands)
    view = commands.add_parser("view", help=sentence("cli.view"))
    view.add_argument("files", metavar="FILE", nargs="+")
    view.add_argument("--html", metavar="F", help=sentence("cli.view.html"))
    view.set_defaults(command=_view)
    check = commands.add_parser("check", help=sentence("cli.check"))
    check.set_defaults(command=_check)
    diff = commands.add_parser("diff", help=sentence("cli.diff"))
    diff.add_argument("before", metavar="A")
    diff.add_argument("after", metavar="B")
    diff.add_argument("--html", metavar="F", help=sentence("cli.diff.html"))
    diff.set_defaults(command=_diff)
    return parser


def _add_run(commands: Any) -> None:
    run = commands.add_parser(
        "run",
        help=sentence("cli.run"),
        usage="devtrace run [option ...] SCRIPT [ARG ...] | -m MODULE [ARG ...]",
    )
    for flag in _PROGRAM_FLAGS:
        run.add_argument(
            flag.name,
            metavar=flag.metavar,
            dest=flag.field,
            type=flag.read,
            default=argparse.SUPPRESS,
            help=flag.program_help.replace("%", "%%"),
        )
    run.add_argument("--untraced", action="store_true", help=sentence("cli.untraced"))
    run.add_argument("-m", dest="module", metavar="MODULE", nargs=argparse.REMAINDER, help=sentence("cli.module"))
    run.add_argument("script", metavar="SCRIPT", nargs=argparse.REMAINDER, help=sentence("cli.script"))
    run.set_defaults(command=_run, takes_value=run.takes_value)


def _help(parser: argparse.ArgumentParser) -> int:
    parser.print_help(sys.stderr)
    return USAGE


def _run(options: argparse.Namespace) -> int:
    overlay.use_from_environment()
    program = _program(options)
    program.check()
    given = vars(options)
    chosen = Options(**{flag.field: given[flag.field] for flag in _PROGRAM_FLAGS if flag.field in given})
    chosen.check_files()
    misplaced.warn_at_exit("run", program, options.takes_value)
    if options.untraced:
        run_untraced(program, chosen)
    else:
        Launch(program, chosen).run()
    return 0


def _program(options: argparse.Namespace) -> Program:
    words = options.script if options.module is None else options.module
    if not words:
        raise UsageError.of("program-missing")
    return Program(words[0], tuple(words[1:]), is_module=options.module is not None)


def _view(options: argparse.Namespace) -> int:
    from devtrace.api.results import diagnose
    from devtrace.report.page import to_html
    from devtrace.report.text import terminal_width, text

    report = diagnose(_loaded(options.files))
    print(text(report, terminal_width(sys.stdout)))
    if options.html:
        return _write(options.html, sentence("cli.report"), lambda path: to_html(report, path))
    with tempfile.NamedTemporaryFile(prefix="devtrace-", suffix=".html", delete=False) as file:
        page = to_html(report, Path(file.name))
    print(sentence("cli.opened" if webbrowser.open(page.as_uri()) else "cli.open-this", page=page))
    return 0


def _write(file: str, what: str, write: Callable[[Path], object]) -> int:
    write_as_asked(Path(file), write, what)
    print(sentence("cli.written", what=what, path=file))
    return 0


def _loaded(files: Sequence[str]) -> Trace:
    from devtrace.api.results import from_profiler, load

    try:
        with suppress(FormatError):
            return from_profiler(files[0])
        return load(*files)
    except OSError as error:
        raise UsageError.of("file-unreadable", file=repr(error.filename), reason=error.strerror) from None


def _check(options: argparse.Namespace) -> int:
    from devtrace.api.environment import describe

    print(describe())
    return 0


def _diff(options: argparse.Namespace) -> int:
    from devtrace.interchange.diff import diff

    before, after = options.before, options.after
    found = diff(_loaded([before]), _loaded([after]), names=(Path(before).name, Path(after).name))
    print(found)
    if options.html:
        _write(options.html, sentence("cli.comparison"), found.to_html)
    return 1 if found.worse else 0
