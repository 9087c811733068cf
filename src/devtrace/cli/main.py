"""The command line: run a program under devtrace, look at its trace, compare two, check the environment."""

import argparse
import sys
import tempfile
import webbrowser
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from devtrace.api.options import FLAGS, MAX_OPS, Options
from devtrace.cli import reports
from devtrace.cli.launch import Launch
from devtrace.cli.parser import Parser
from devtrace.cli.run_program import Program
from devtrace.features import offered
from devtrace.runtime import overlay
from devtrace.runtime.requirements import own_version
from devtrace.words.catalogue import sentence
from devtrace.words.errors import DevtraceError, UsageError

USAGE = 2
"""The exit code for a command that cannot be followed, as Python's own."""
_PROGRAM_FLAGS = [flag for flag in FLAGS if flag.program_key]


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
    version = f"devtrace {own_version()}"
    parser.add_argument("--version", action="version", version=version, help=sentence("cli.version"))
    parser.set_defaults(command=lambda options: _print_help(parser))
    commands = parser.add_subparsers(metavar="COMMAND")
    for name, add_to in _COMMANDS.items():
        add_to(commands)
        for command in offered("command").values():
            if command.after == name:
                command.add_to(commands)
    return parser


def _add_run(commands: Any) -> None:
    usage = "devtrace run [option ...] SCRIPT [ARG ...] | -m MODULE [ARG ...]"
    run = commands.add_parser("run", help=sentence("cli.run"), usage=usage)
    for flag in _PROGRAM_FLAGS:
        switch = {"action": "store_false" if flag.name.startswith("--no-") else "store_true"}
        value: Any = {"metavar": flag.metavar, "type": flag.read} if flag.metavar else switch
        text = sentence(flag.program_key, usual=MAX_OPS).replace("%", "%%")
        run.add_argument(flag.name, dest=flag.field, default=argparse.SUPPRESS, help=text, **value)
    reports.add_gate(run)
    run.set_defaults(command=_run, way=lambda program, options: Launch(program, options).run())
    for add_flag in offered("way").values():
        add_flag(run)
    run.add_argument("-m", dest="module", metavar="MODULE", nargs=argparse.REMAINDER, help=sentence("cli.module"))
    run.add_argument("script", metavar="SCRIPT", nargs=argparse.REMAINDER, help=sentence("cli.script"))


def _print_help(parser: argparse.ArgumentParser) -> int:
    parser.print_help(sys.stderr)
    return USAGE


def _run(options: argparse.Namespace) -> int:
    overlay.use_from_environment()
    program = _program_to_run(options)
    program.check()
    names = {option.name for option in fields(Options)}
    flags = Options(**{name: value for name, value in vars(options).items() if name in names})
    flags.check_files()
    options.way(program, flags)
    return 0


def _program_to_run(options: argparse.Namespace) -> Program:
    words = options.script if options.module is None else options.module
    if not words:
        raise UsageError.of("program-missing")
    return Program(words[0], tuple(words[1:]), is_module=options.module is not None)


def _add_view(commands: Any) -> None:
    view = commands.add_parser("view", help=sentence("cli.view"))
    view.add_argument("files", metavar="FILE", nargs="+")
    view.add_argument("--html", metavar="F", help=sentence("cli.view.html"))
    view.set_defaults(command=_view)


def _view(options: argparse.Namespace) -> int:
    from devtrace.report.page import to_html
    from devtrace.report.text import terminal_width, text

    report = reports.report_of(options)
    print(text(report, terminal_width(sys.stdout)))
    if options.html:
        return reports.write(options.html, sentence("cli.report"), lambda path: to_html(report, path))
    with tempfile.NamedTemporaryFile(prefix="devtrace-", suffix=".html", delete=False) as file:
        page = to_html(report, Path(file.name))
    print(sentence("cli.opened" if webbrowser.open(page.as_uri()) else "cli.open-this", page=page))
    return 0


def _add_report(commands: Any) -> None:
    report = reports.add_report(commands, "report", sentence("cli.report-command"), reports.report_of, "+")
    report.add_argument("--again", action="store_true", help=sentence("cli.report.again"))


def _add_check(commands: Any) -> None:
    check = commands.add_parser("check", help=sentence("cli.check"))
    check.set_defaults(command=_check)


def _check(options: argparse.Namespace) -> int:
    from devtrace.api.environment import describe

    print(describe())
    return 0


_COMMANDS: Final[dict[str, Callable[[Any], None]]] = {
    "run": _add_run,
    "view": _add_view,
    "report": _add_report,
    "check": _add_check,
}
"""In the order of the help; a feature's own come behind one of these."""
