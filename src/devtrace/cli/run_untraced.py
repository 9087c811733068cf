"""`devtrace run --untraced`: the program runs as without devtrace, and a device error that ends it is explained."""

import dataclasses

from devtrace.api import installation
from devtrace.api.options import Options
from devtrace.cli.output import begin
from devtrace.cli.run_program import Program, print_as_its_own
from devtrace.runtime.import_hook import ImportWatcher
from devtrace.words.errors import UsageError


def run_untraced(program: Program, options: Options) -> None:
    """Run the program; its exception or exit passes through."""
    _refuse_what_needs_a_trace(options)
    _, run = program.prepare()
    installation.install()
    if options.simulate:
        ImportWatcher("torch").call_when_imported(lambda: begin(lambda: _simulate(options.simulate), ends_program=True))
    try:
        run()
    except BaseException as error:
        print_as_its_own(error)
        raise


def _simulate(devices: str | None) -> None:
    from devtrace.simulation.simulation import simulate

    simulate(devices or "").start()


def _refuse_what_needs_a_trace(options: Options) -> None:
    for each in dataclasses.fields(Options):
        if each.name != "simulate" and getattr(options, each.name) != each.default:
            flag = f"--{each.name.replace('_', '-')}"
            raise UsageError.of("untraced-flag", flag=flag)
