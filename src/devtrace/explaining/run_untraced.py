"""`devtrace run --untraced`: the program runs as without devtrace, and a device error that ends it is explained.

With `--json` the explanation is there for a program, too, also that there is nothing to explain.
"""

from __future__ import annotations

import argparse
import atexit
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from devtrace.api.options import Options
from devtrace.cli.output import begin, print_line
from devtrace.cli.run_program import Program, print_as_its_own
from devtrace.explaining import installation
from devtrace.runtime.import_hook import ImportWatcher
from devtrace.runtime.simulated import simulate
from devtrace.runtime.whole_files import write_somewhere
from devtrace.words.catalogue import sentence
from devtrace.words.errors import UsageError

if TYPE_CHECKING:
    from devtrace.diagnosis.findings import ReportData

NEED_NO_TRACE = ("simulate", "json")


def add_flag(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--untraced", dest="way", action="store_const", const=run_untraced, help=sentence("cli.untraced")
    )


def run_untraced(program: Program, options: Options) -> None:
    """Run the program; its exception or exit passes through."""
    _refuse_what_needs_a_trace(options)
    _, run = program.prepare()
    installation.install()
    endings: list[tuple[BaseException, ReportData | None]] = []
    if options.json:
        atexit.register(_write_report, options.json, program.name, Path.cwd(), endings)
    if options.simulate:
        devices = options.simulate
        ImportWatcher("torch").call_when_imported(lambda: begin(lambda: simulate(devices).start(), ends_program=True))
    try:
        run()
    except BaseException as error:
        if options.json:
            endings.append((error, installation.report_on(error)))  # while its frames are there
        print_as_its_own(error)
        raise


def _write_report(json: str, title: str, folder: Path, endings: list[tuple[BaseException, ReportData | None]]) -> None:
    """Write the report for `--json` when the program has ended; `endings` has the error and its report, if any."""
    from devtrace.api.recording import outcome_of
    from devtrace.contract.entries import entries_of
    from devtrace.contract.forms import Forms
    from devtrace.explaining.explain import without_findings

    error, report_on_error = endings[0] if endings else (None, None)
    report = report_on_error or without_findings()
    report = replace(report, trace=replace(report.trace, title=title, outcome=outcome_of(error)))
    forms = Forms(report, entries_of(report.findings), folder, error=error)
    for form in forms.files(json, None):
        print_line(write_somewhere(folder, Path(form.path), sentence("cli.findings"), form.write)[1])
    print_line(forms.line(json), sys.stdout, but_not_empty=True)


def _refuse_what_needs_a_trace(options: Options) -> None:
    for option in fields(Options):
        if option.name not in NEED_NO_TRACE and getattr(options, option.name) != option.default:
            flag = f"--{option.name.replace('_', '-')}"
            raise UsageError.of("untraced-flag", flag=flag)
