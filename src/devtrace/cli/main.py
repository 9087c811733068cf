"""The command line: run a program under devtrace, look at its trace, compare two, check the environment."""

from __future__ import annotations

import argparse
import sys
import tempfile
import webbrowser
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from devtrace.api.options import FLAGS, Options
from devtrace.cli.launch import Launch
from devtrace.cli.output import FOUND, print_line
from devtrace.cli.parser import Parser
from devtrace.cli.run_program import Program
from devtrace.contract.levels import FAIL_ON, read_level
from devtrace.explaining.run_untraced import run_untraced
from devtrace.fixing import command
from devtrace.runtime import overlay
from devtrace.runtime.requirements import own_version
from devtrace.runtime.whole_files import write_as_asked
from devtrace.words.catalogue import sentence
from devtrace.words.errors import DevtraceError, FormatError, UsageError

if TYPE_CHECKING:
    from devtrace.api.results import Report, Trace

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
    own = f"devtrace {own_version()}"
    parser.add_argument("--version", action="version", version=own, help=sentence("cli.version"))
    parser.set_defaults(command=lambda options: _help(parser))
    commands = parser.add_subparsers(metavar="COMMAND")
    _add_run(commands)
    command.add_to(commands)
    view = commands.add_parser("view", help=sentence("cli.view"))
    view.add_argument("files", metavar="FILE", nargs="+")
    view.add_argument("--html", metavar="F", help=sentence("cli.view.html"))
    view.set_defaults(command=_view)
    _add_report(commands)
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
        value: Any = {"metavar": flag.metavar, "type": flag.read} if flag.metavar else {"action": "store_true"}
        text = flag.program_help.replace("%", "%%")
        run.add_argument(flag.name, dest=flag.field, default=argparse.SUPPRESS, help=text, **value)
    _add_gate(run)
    run.add_argument("--untraced", action="store_true", help=sentence("cli.untraced"))
    run.add_argument("-m", dest="module", metavar="MODULE", nargs=argparse.REMAINDER, help=sentence("cli.module"))
    run.add_argument("script", metavar="SCRIPT", nargs=argparse.REMAINDER, help=sentence("cli.script"))
    run.set_defaults(command=_run)


def _add_gate(parser: Parser) -> None:
    """Add what a job of continuous integration asks for."""
    usual = argparse.SUPPRESS
    parser.add_argument(
        "--fail-on", metavar="|".join(FAIL_ON), type=read_level, default=usual, help=sentence("cli.fail-on")
    )
    parser.add_argument("--notes", action="store_true", default=usual, help=sentence("cli.notes"))


def _help(parser: argparse.ArgumentParser) -> int:
    parser.print_help(sys.stderr)
    return USAGE


def _run(options: argparse.Namespace) -> int:
    overlay.use_from_environment()
    program = _program(options)
    program.check()
    given, known = vars(options), {each.name for each in fields(Options)}
    chosen = Options(**{name: value for name, value in given.items() if name in known})
    chosen.check_files()
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


def _add_report(commands: Any) -> None:
    for name, key, files, read in (
        ("report", "cli.report-command", "+", _of_files),
        ("explain", "cli.explain-command", 1, _of_an_error),
    ):
        parser = commands.add_parser(name, help=sentence(key))
        parser.add_argument("files", metavar="FILE", nargs=files)
        parser.add_argument("--json", metavar="F", help=sentence("flag.json.program"))
        parser.add_argument("--sarif", metavar="F", help=sentence("flag.sarif.program"))
        _add_gate(parser)
        parser.set_defaults(command=_report, read=read)


def _of_files(files: Sequence[str]) -> Report:
    from devtrace.api.results import diagnose

    return diagnose(_loaded(files))


def _of_an_error(files: Sequence[str]) -> Report:
    """Explain a saved traceback, or a trace."""
    try:
        return _of_files(files)
    except FormatError:
        from devtrace.explaining.explain import explain_text
        from devtrace.runtime.requirements import need_torch

        need_torch()
        return explain_text(Path(files[0]).read_text(encoding="utf-8", errors="replace"))


def _report(options: argparse.Namespace) -> int:
    """Print a report in all forms asked for; where stdout is for a program, the text goes to stderr."""
    from devtrace.contract.code_scanning import project_folder
    from devtrace.contract.entries import entries_of
    from devtrace.contract.forms import TO_STDOUT, Forms
    from devtrace.report.text import terminal_width, text

    report, given = options.read(options.files), vars(options)
    entries = entries_of(report.findings, given.get("fail_on", "warning"))
    forms = Forms(report, entries, project_folder(Path.cwd()), "notes" in given)
    stream = sys.stderr if options.json in TO_STDOUT else sys.stdout
    print_line(text(report, terminal_width(stream)), stream)
    for path, what, write in forms.files(options.json, options.sarif):
        write_as_asked(Path(path), write, sentence(what))
        print_line(sentence("cli.written", what=sentence(what), path=path), stream)
    print_line(forms.annotations(), stream, but_not_empty=True)
    print_line(forms.line(options.json), sys.stdout, but_not_empty=True)
    return FOUND if any(entry.limit for entry in entries) else 0


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
    from devtrace.api.results import load

    try:
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
