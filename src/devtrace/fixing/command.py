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

CLEAN, LEFT = 0, 1


def _add_to(commands: Any) -> None:
    fix = commands.add_parser(
        "fix",
        help=sentence("cli.fix"),
        usage="devtrace fix [option ...] SCRIPT [ARG ...] | -m MODULE [ARG ...] | NOTEBOOK.ipynb",
        description=sentence("cli.fix.description"),
        epilog=sentence("cli.fix.caution"),
    )
    fix.add_argument("--simulate", metavar="cuda:N", default="cuda:1", help=sentence("cli.fix.simulate"))
    fix.add_argument("--costs", action="store_true", help=sentence("cli.fix.costs"))
    fix.add_argument("--write", action="store_true", help=sentence("cli.fix.write"))
    fix.add_argument(
        "--rounds", metavar="N", type=_count, default=MOST_ROUNDS, help=sentence("cli.fix.rounds", usual=MOST_ROUNDS)
    )
    fix.add_argument("--timeout", metavar="S", type=float, help=sentence("cli.fix.timeout"))
    fix.add_argument("--patch", metavar="F", type=Path, help=sentence("cli.fix.patch"))
    fix.add_argument("--json", metavar="F", type=Path, help=sentence("cli.fix.json"))
    fix.add_argument("-m", dest="module", metavar="MODULE", nargs=argparse.REMAINDER, help=sentence("cli.module"))
    fix.add_argument("script", metavar="SCRIPT", nargs=argparse.REMAINDER, help=sentence("cli.script"))
    fix.set_defaults(command=run)


COMMAND: Final = Command("run", _add_to)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise UsageError.of("fix-rounds", given=text)
    return int(text)


def run(options: argparse.Namespace) -> int:
    """Run a program until nothing is left or nothing helps; print and write what came of it."""
    runner = _runner(options)
    for path, what in ((options.patch, "cli.patch"), (options.json, "cli.findings")):
        if path is not None and not os.access(path.parent, os.W_OK):  # before the runs, not after
            raise UsageError.of("not-written", file=path, reason=os.strerror(EACCES), what=sentence(what))
    reference = ReferenceRun(partial(_of_reference, runner))
    rounds = Rounds(runner.run, text_of, options.rounds, reference, announce=_announce)
    rounds.go()
    costs = Costs(rounds)
    if options.costs and rounds.is_proven and rounds.last.ending == "ended":
        costs.go()
    runner.close()
    ours, packages = _by_owner(rounds)
    before = {file: text for change in reversed(rounds.changes) for file, text in change.before.items()}
    folder = _folder_of(ours)
    patch = unified_diff(before, ours, reasons(rounds), folder)
    sys.stdout.buffer.write(patch)
    sys.stdout.flush()
    _print(_summary(rounds, costs, options))
    if options.patch is not None:
        write_as_asked(options.patch, lambda path: put(path, patch), sentence("cli.patch"))
    if options.json is not None:
        made = (change.finding for change in rounds.changes)
        fixed = findings_json.of_fixes((options.module or options.script)[0], made, rounds.last.findings)
        write_as_asked(options.json, lambda path: findings_json.write(fixed, path), sentence("cli.findings"))
    if folder:
        _print([sentence("fix.elsewhere", folder=folder)])
    for (package, installed), texts in packages.items():
        shown = unified_diff(before, texts, reasons(rounds), installed).decode(errors="backslashreplace")
        _print([sentence("fix.package", package=package, folder=installed)])
        print(shown, file=sys.stderr, end="")
    if rounds.unmended:
        _print([rounds.unmended])
    if options.write and ours:
        _write(rounds, before, ours)
    is_done = rounds.is_proven and not rounds.unmended and rounds.last.ending in ("ended", "time")
    return CLEAN if is_done else LEFT


def _folder_of(files: Iterable[str]) -> str:
    """Return the folder for `git apply` if a file is outside of the working directory: it takes no `..`."""
    here, real = os.path.realpath(os.getcwd()), [os.path.realpath(file) for file in files]
    if all(Path(file).is_relative_to(here) for file in real):
        return ""
    return os.path.commonpath([os.path.dirname(file) for file in real])


def _announce(rounds: Rounds, own: frozenset[str]) -> None:
    """Say before each run which one it is and why, above all that it prints."""
    number = len(rounds.runs) + 1
    if own:
        _print([sentence("fix.run-own", number=number, packages=comma().join(sorted(own)))])
    elif rounds.changes:
        _print([sentence("fix.run-with", number=number, site=rounds.changes[-1].finding.site)])
    else:
        _print([sentence("fix.run", number=number)])


def _of_reference(runner: Runner) -> ProgramRun:
    _print([sentence("fix.run-reference")])
    return runner.run({}, one_device=True)


def _runner(options: argparse.Namespace) -> Runner:
    words = options.script if options.module is None else ["-m", *options.module]
    if not words or words == ["-m"]:
        raise UsageError.of("program-missing.fix")
    if options.module is None and not os.path.exists(words[0]):
        raise UsageError.of("script-missing.fix", script=repr(words[0]), folder=os.getcwd())
    return Runner(tuple(words), options.simulate, options.timeout)


def _by_owner(rounds: Rounds) -> tuple[dict[str, SourceText], dict[tuple[str, str], dict[str, SourceText]]]:
    """Part the changed files into the user's, and those of each package with the folder that it was installed in."""
    ours: dict[str, SourceText] = {}
    packages: dict[tuple[str, str], dict[str, SourceText]] = {}
    for file, text in rounds.texts.items():
        if owner_of(file) == "user":
            ours[file] = text
        else:
            packages.setdefault((package_of(file), folder_of_packages(file)), {})[file] = text
    return ours, packages


def reasons(rounds: Rounds) -> dict[str, list[tuple[int, str]]]:
    """Return, by file, the lines of each fix in the last text, and the reason for it."""
    reasons: dict[str, list[tuple[int, str]]] = {}
    for change in rounds.changes:
        for file in change.after:
            moved = [(lines_after(change, file, line)[0], reason) for line, reason in reasons.get(file, [])]
            made = [(lines.start, _reason(change)) for lines in changed_blocks(change, file)]
            reasons[file] = [*moved, *made]
    return reasons


def _reason(change: Change) -> str:
    """Return what a change is for, and how often the program paid before and after if it is of a cost."""
    message = one_line(change.finding.message)
    if change.counts is None:
        return message
    before, after = change.counts
    return sentence("fix.reason-of-cost", before=before, after=after, message=message)


def _summary(rounds: Rounds, costs: Costs, options: argparse.Namespace) -> Iterable[str]:
    """Yield the last lines: what was changed, what was left and why, and how the run with all changes ended."""
    last = rounds.last
    devices = sentence("fix.devices", count=count_of(options.simulate))
    is_tried = rounds.compared is not None and not rounds.compared.is_proof
    for change in rounds.changes:
        key = "fix.mended" if change.counts is None else "fix.cheaper"
        yield sentence(key, site=change.finding.site, message=_reason(change))
        if is_tried:  # and not proven: what the change does explains what differs
            yield "  " + sentence("fix.help", help=change.finding.help)
        if change.counts is not None:
            yield "  " + sentence("fix.proof", proof=change.finding.proof)
    for finding, why in costs.rejected:
        yield sentence("fix.cost-left", site=finding.site, why=why, message=one_line(finding.message))
    if options.costs and last.ending != "ended":
        yield sentence("fix.costs-unknown")
    if rounds.left is not None:
        yield sentence("fix.left", site=rounds.left.site, message=one_line(rounds.left.message))
        yield f"  {rounds.why_left}"
        if rounds.left.help:
            yield "  " + sentence("fix.help", help=rounds.left.help)
    elif last.error is not None:
        yield sentence("fix.not-proven", count=len(rounds.runs))
    elif last.ending == "ended":
        key = "fix.proven" if not rounds.changes else "fix.tried" if is_tried else "fix.proven-with-patch"
        compared = [rounds.difference(rounds.compared)] if rounds.compared is not None else []
        yield "; ".join([sentence(key, devices=devices), *compared])
    elif last.ending == "time":
        yield sentence("fix.time", limit=f"{options.timeout:g}", devices=devices)
    else:
        yield sentence("fix.ended-early", devices=devices, raised=last.raised or sentence("fix.signal"))


def _write(rounds: Rounds, before: Mapping[str, SourceText], ours: Mapping[str, SourceText]) -> None:
    if not rounds.is_proven:
        _print([sentence("fix.nothing-written")])
        return
    write_all(before, ours)
    _print([sentence("fix.written", files=comma().join(relative(file) for file in ours))])


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        print(sentence("run.line", text=line), file=sys.stderr)
