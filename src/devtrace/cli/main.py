"""The command line: run a program under devtrace, look at its trace, compare two, check the environment."""

from __future__ import annotations

import argparse
import sys
import tempfile
import webbrowser
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from devtrace.api.options import FLAGS, Options
from devtrace.cli import fix
from devtrace.cli.launch import Launch
from devtrace.cli.run_program import Program
from devtrace.cli.run_untraced import run_untraced
from devtrace.runtime import overlay
from devtrace.words.errors import DevtraceError, FormatError, UsageError

if TYPE_CHECKING:
    from devtrace.api.results import Trace

USAGE = 2
"""The exit code for a command that cannot be followed, as Python's own."""
_PROGRAM_FLAGS = [flag for flag in FLAGS if flag.program_help]


def main(arguments: Sequence[str] | None = None) -> int:
    try:
        options = _parser().parse_args(arguments)
        code: int = options.command(options)
    except DevtraceError as error:
        print(f"devtrace: {error}", file=sys.stderr)
        return USAGE
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="devtrace", description="Shows exactly where a CPU tensor entered a GPU computation."
    )
    parser.add_argument("--version", action="version", version=f"devtrace {version('devtrace')}")
    parser.set_defaults(command=lambda options: _help(parser))
    commands = parser.add_subparsers(metavar="COMMAND")
    _add_run(commands)
    fix.add_to(commands)
    view = commands.add_parser(
        "view", help="open a saved trace, the ranks of one job together, or an export of torch.profiler, in the browser"
    )
    view.add_argument("files", metavar="FILE", nargs="+")
    view.add_argument("--html", metavar="F", help="write the page here, and open nothing")
    view.set_defaults(command=_view)
    check = commands.add_parser("check", help="tell what torch, devices and Jupyter this Python has")
    check.set_defaults(command=_check)
    diff = commands.add_parser("diff", help="compare two saved traces; 1 if an error or warning came")
    diff.add_argument("before", metavar="A")
    diff.add_argument("after", metavar="B")
    diff.add_argument("--html", metavar="F", help="write a page with what changed and all views of B")
    diff.set_defaults(command=_diff)
    return parser


def _add_run(commands: Any) -> None:
    run = commands.add_parser(
        "run",
        help="run a script or module as Python would, and report at its end",
        usage="devtrace run [option ...] SCRIPT [ARG ...] | -m MODULE [ARG ...]",
    )
    for flag in _PROGRAM_FLAGS:
        run.add_argument(
            flag.name,
            metavar=flag.metavar,
            dest=flag.field,
            type=flag.read,
            default=argparse.SUPPRESS,
            help=flag.program_help,
        )
    run.add_argument(
        "--untraced", action="store_true", help="record nothing, and explain a device error that ends the program"
    )
    run.add_argument("-m", dest="module", metavar="MODULE", nargs=argparse.REMAINDER, help="run a module")
    run.add_argument("script", metavar="SCRIPT", nargs=argparse.REMAINDER, help="the script and its arguments")
    run.set_defaults(command=_run)


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
    if options.untraced:
        run_untraced(program, chosen)
    else:
        Launch(program, chosen).run()
    return 0


def _program(options: argparse.Namespace) -> Program:
    words = options.script if options.module is None else options.module
    if not words:
        raise UsageError(
            "program-missing",
            "devtrace run without a program",
            "it takes SCRIPT [ARG ...], or -m MODULE [ARG ...]",
            "name what to run",
        )
    return Program(words[0], tuple(words[1:]), is_module=options.module is not None)


def _view(options: argparse.Namespace) -> int:
    from devtrace.api.results import diagnose
    from devtrace.report.page import to_html

    report = diagnose(_loaded(options.files))
    print(report.text)
    if options.html:
        print(f"devtrace: the report is in {to_html(report, options.html)}")
        return 0
    with tempfile.NamedTemporaryFile(prefix="devtrace-", suffix=".html", delete=False) as file:
        page = to_html(report, Path(file.name))
    print(f"devtrace: {'opened' if webbrowser.open(page.as_uri()) else 'open this in a browser:'} {page}")
    return 0


def _loaded(files: Sequence[str]) -> Trace:
    from devtrace.api.results import from_profiler, load

    try:
        with suppress(FormatError):
            return from_profiler(files[0])
        return load(*files)
    except OSError as error:
        raise UsageError(
            "file-unreadable",
            f"{error.filename!r} ({error.strerror})",
            "devtrace reads the files that `--save` and trace.save() write",
            "look where it is",
        ) from None


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
        print(f"devtrace: the comparison is in {found.to_html(options.html)}")
    return 1 if found.worse else 0
