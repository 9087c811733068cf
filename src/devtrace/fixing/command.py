"""`devtrace fix`: a patch that was proven by running the program with it on simulated devices."""

import argparse
import os
import sys
from collections.abc import Iterable, Mapping
from errno import EACCES
from functools import partial
from pathlib import Path
from typing import Any, Final

from devtrace.cli.parser import Command
from devtrace.contract import findings_json
from devtrace.fixing.compared import ReferenceRun
from devtrace.fixing.costs import Costs
from devtrace.fixing.patch import relative, unified_diff, write_all
from devtrace.fixing.rounds import MOST_ROUNDS, Change, ProgramRun, Rounds, changed_blocks, lines_after
from devtrace.fixing.runner import Runner, text_of
from devtrace.fixing.source_text import SourceText
from devtrace.runtime.device_spec import count_of
from devtrace.runtime.whole_files import put, write_as_asked
from devtrace.source.user_code import folder_of_packages, owner_of, package_of
from devtrace.words.catalogue import comma, sentence
from devtrace.words.errors import UsageError
from devtrace.words.text_format import one_line

CLEAN, LEFT = 0, 1  # exit codes


def _add_to(commands: Any) -> None:
    fix = commands.add_parser(
        "fix",
        help=sentence("cli.fix"),
        usage="devtrace fix [option ...] SCRIPT [ARG ...] | -m MODULE [ARG ...] | NOTEBOOK.ipynb",
        description=sentence("cli.fix.description"),
        epilog=f"{sentence('cli.fix.caution')} {sentence('cli.fix.once')}",
    )
    fix.add_argument("--simulate", metavar="cuda:N", default="cuda:1", help=sentence("cli.fix.simulate"))
    fix.add_argument("--costs", action="store_true", help=sentence("cli.fix.costs"))
    fix.add_argument("--write", action="store_true", help=sentence("cli.fix.write"))
    fix.add_argument(
        "--rounds", metavar="N", type=_positive, default=MOST_ROUNDS, help=sentence("cli.fix.rounds", usual=MOST_ROUNDS)
    )
    fix.add_argument("--timeout", metavar="S", type=float, help=sentence("cli.fix.timeout"))
    fix.add_argument("--patch", metavar="F", type=Path, help=sentence("cli.fix.patch"))
    fix.add_argument("--json", metavar="F", type=Path, help=sentence("cli.fix.json"))
    fix.add_argument("-m", dest="module", metavar="MODULE", nargs=argparse.REMAINDER, help=sentence("cli.module"))
    fix.add_argument("script", metavar="SCRIPT", nargs=argparse.REMAINDER, help=sentence("cli.script"))
    fix.set_defaults(command=run)


COMMAND: Final = Command("run", _add_to)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise UsageError.of("fix-rounds", given=text)
    return int(text)


def run(options: argparse.Namespace) -> int:
    """Run a program until no error is left or no fix helps; print the patch and write the files asked for."""
    runner = _runner_of_options(options)
    for path, title in ((options.patch, "cli.patch"), (options.json, "cli.findings")):
        if path is not None and not os.access(path.parent, os.W_OK):  # before the runs, not after
            raise UsageError.of("not-written", file=path, reason=os.strerror(EACCES), what=sentence(title))
    reference = ReferenceRun(partial(_run_reference, runner))
    rounds = Rounds(runner.run, text_of, options.rounds, reference, announce=_announce)
    rounds.go()
    costs = Costs(rounds)
    if options.costs and rounds.is_proven and rounds.last.ending == "ended":
        costs.go()
    runner.close()
    user_texts, package_texts = _texts_by_owner(rounds)
    texts_before = {file: text for change in reversed(rounds.changes) for file, text in change.before.items()}
    folder = _folder_of(user_texts)
    patch = unified_diff(texts_before, user_texts, reasons(rounds), folder)
    sys.stdout.buffer.write(patch)
    sys.stdout.flush()
    _print(_summary(rounds, costs, options))
    if options.patch is not None:
        write_as_asked(options.patch, lambda path: put(path, patch), sentence("cli.patch"))
    if options.json is not None:
        fixed_findings = (change.finding for change in rounds.changes)
        data = findings_json.of_fixes((options.module or options.script)[0], fixed_findings, rounds.last.findings)
        write_as_asked(options.json, lambda path: findings_json.write(data, path), sentence("cli.findings"))
    if folder:
        _print([sentence("fix.elsewhere", folder=folder)])
    for (package, installed), texts in package_texts.items():
        package_patch = unified_diff(texts_before, texts, reasons(rounds), installed).decode(errors="backslashreplace")
        _print([sentence("fix.package", package=package, folder=installed)])
        print(package_patch, file=sys.stderr, end="")
    if rounds.unmended:
        _print([rounds.unmended])
    if options.write and user_texts:
        _write_files(rounds, texts_before, user_texts)
    is_done = rounds.is_proven and not rounds.unmended and rounds.last.ending in ("ended", "time")
    return CLEAN if is_done else LEFT


def _folder_of(files: Iterable[str]) -> str:
    """Return "" if all files are in the working directory, else their common folder: `git apply` takes no `..`."""
    working_folder, real_paths = os.path.realpath(os.getcwd()), [os.path.realpath(file) for file in files]
    if all(Path(file).is_relative_to(working_folder) for file in real_paths):
        return ""
    return os.path.commonpath([os.path.dirname(file) for file in real_paths])


def _announce(rounds: Rounds, own_packages: frozenset[str]) -> None:
    """Print, before each run of the program, its number and what is different in it."""
    number = len(rounds.runs) + 1
    if own_packages:
        _print([sentence("fix.run-own", number=number, packages=comma().join(sorted(own_packages)))])
    elif rounds.changes:
        _print([sentence("fix.run-with", number=number, site=rounds.changes[-1].finding.site)])
    else:
        _print([sentence("fix.run", number=number)])


def _run_reference(runner: Runner) -> ProgramRun:
    _print([sentence("fix.run-reference")])
    return runner.run({}, one_device=True)


def _runner_of_options(options: argparse.Namespace) -> Runner:
    words = options.script if options.module is None else ["-m", *options.module]
    if not words or words == ["-m"]:
        raise UsageError.of("program-missing.fix")
    if options.module is None and not os.path.exists(words[0]):
        raise UsageError.of("script-missing.fix", script=repr(words[0]), folder=os.getcwd())
    return Runner(tuple(words), options.simulate, options.timeout)


def _texts_by_owner(rounds: Rounds) -> tuple[dict[str, SourceText], dict[tuple[str, str], dict[str, SourceText]]]:
    """Return the changed files of the user, and those of packages by (package, folder of its installation)."""
    user_texts: dict[str, SourceText] = {}
    package_texts: dict[tuple[str, str], dict[str, SourceText]] = {}
    for file, text in rounds.texts.items():
        if owner_of(file) == "user":
            user_texts[file] = text
        else:
            package_texts.setdefault((package_of(file), folder_of_packages(file)), {})[file] = text
    return user_texts, package_texts


def reasons(rounds: Rounds) -> dict[str, list[tuple[int, str]]]:
    """Return by file the reason of each fix, with the first line that it changed as the last text counts it."""
    by_file: dict[str, list[tuple[int, str]]] = {}
    for change in rounds.changes:
        for file in change.after:
            earlier = [(lines_after(change, file, line)[0], reason) for line, reason in by_file.get(file, [])]
            new = [(lines.start, _reason(change)) for lines in changed_blocks(change, file)]
            by_file[file] = [*earlier, *new]
    return by_file


def _reason(change: Change) -> str:
    """Return a fix's message; if it fixes a cost, also how often the program paid before and after."""
    message = one_line(change.finding.message)
    if change.counts is None:
        return message
    before, after = change.counts
    return sentence("fix.reason-of-cost", before=before, after=after, message=message)


def _summary(rounds: Rounds, costs: Costs, options: argparse.Namespace) -> Iterable[str]:
    """Yield the last lines: what was changed, what was left and why, and how the run with all changes ended."""
    last_run = rounds.last
    devices = sentence("fix.devices", count=count_of(options.simulate))
    is_unproven = rounds.compared is not None and not rounds.compared.is_proof
    for change in rounds.changes:
        key = "fix.mended" if change.counts is None else "fix.cheaper"
        yield sentence(key, site=change.finding.site, message=_reason(change))
        if is_unproven:  # the help says what the fix does, which explains why values differ
            yield "  " + sentence("fix.help", help=change.finding.help)
        if change.counts is not None:
            yield "  " + sentence("fix.proof", proof=change.finding.proof)
    for finding, reason in costs.rejected:
        yield sentence("fix.cost-left", site=finding.site, why=reason, message=one_line(finding.message))
    if options.costs and last_run.ending != "ended":
        yield sentence("fix.costs-unknown")
    if rounds.left is not None:
        yield sentence("fix.left", site=rounds.left.site, message=one_line(rounds.left.message))
        yield f"  {rounds.why_left}"
        if rounds.left.help:
            yield "  " + sentence("fix.help", help=rounds.left.help)
    elif last_run.error is not None:
        yield sentence("fix.not-proven", count=len(rounds.runs))
    elif last_run.ending == "ended":
        key = "fix.proven" if not rounds.changes else "fix.tried" if is_unproven else "fix.proven-with-patch"
        differences = [rounds.difference(rounds.compared)] if rounds.compared is not None else []
        yield "; ".join([sentence(key, devices=devices), *differences])
    elif last_run.ending == "time":
        yield sentence("fix.time", limit=f"{options.timeout:g}", devices=devices)
    else:
        yield sentence("fix.ended-early", devices=devices, raised=last_run.raised or sentence("fix.signal"))


def _write_files(rounds: Rounds, texts_before: Mapping[str, SourceText], user_texts: Mapping[str, SourceText]) -> None:
    if not rounds.is_proven:
        _print([sentence("fix.nothing-written")])
        return
    write_all(texts_before, user_texts)
    _print([sentence("fix.written", files=comma().join(relative(file) for file in user_texts))])


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        print(sentence("run.line", text=line), file=sys.stderr)
