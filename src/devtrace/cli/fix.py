"""`devtrace fix`: a patch that was proven by running the program with it on simulated devices."""

from __future__ import annotations

import argparse
import itertools
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from devtrace.diagnosis.findings import Finding
from devtrace.fixing.notebook_text import NotebookText
from devtrace.fixing.patch import relative, unified_diff
from devtrace.fixing.rounds import MOST_ROUNDS, Rounds, Run, changed_blocks, line_after
from devtrace.fixing.source_text import SourceText
from devtrace.fixing.writing import write_all
from devtrace.source.user_code import folder_of_packages, owner_of, package_of
from devtrace.words.catalogue import sentence
from devtrace.words.errors import UsageError
from devtrace.words.text_format import one_line, pluralize

CLEAN, LEFT = 0, 1
Runner = Callable[[Mapping[str, SourceText], frozenset[str]], Run]
_DESCRIPTION = """\
Runs a program on simulated devices, applies the fix of its first device error to a copy in memory, and runs it again,
until no device error is left or nothing helps. The unified diff goes to stdout, everything else to stderr.

Each round runs the program anew, with all that it does: what it writes, sends or deletes, it does once a round.
--rounds 1 runs it once and proves nothing.
"""


def add_to(commands: Any) -> None:
    fix = commands.add_parser(
        "fix",
        help="run a program on simulated devices until no device error is left, and print the patch",
        usage="devtrace fix [option ...] SCRIPT [ARG ...] | -m MODULE [ARG ...] | NOTEBOOK.ipynb",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    fix.add_argument("--simulate", metavar="cuda:N", default="cuda:1", help="how many devices (cuda:1)")
    fix.add_argument("--write", action="store_true", help="change the files, after all is proven; all or none")
    fix.add_argument("--rounds", metavar="N", type=_count, default=MOST_ROUNDS, help=f"at most N runs ({MOST_ROUNDS})")
    fix.add_argument("--timeout", metavar="S", type=float, help="end each run after S seconds")
    fix.add_argument("--patch", metavar="F", type=Path, help="write the diff to a file, too")
    fix.add_argument("-m", dest="module", metavar="MODULE", nargs=argparse.REMAINDER, help="run a module")
    fix.add_argument("script", metavar="SCRIPT", nargs=argparse.REMAINDER, help="the script and its arguments")
    fix.set_defaults(command=run)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise UsageError("fix-rounds", f"--rounds {text}", "it takes a number of runs, 1 or more", "write --rounds 5")
    return int(text)


def run(options: argparse.Namespace) -> int:
    return run_rounds(_runner(options), options)


def run_rounds(run_once: Runner, options: argparse.Namespace) -> int:
    """Run a program until nothing is left or nothing helps; print and write what came of it."""
    rounds = Rounds(_announced(run_once), _read, options.rounds)
    rounds.go()
    ours, packages = _by_owner(rounds)
    before = {file: _first_text(rounds, file) for file in rounds.texts}
    patch = unified_diff(before, ours, _reasons(rounds))
    sys.stdout.buffer.write(patch)
    sys.stdout.flush()
    if options.patch is not None:
        options.patch.write_bytes(patch)
    _print(_summary(rounds, options))
    for (package, folder), texts in packages.items():
        shown = unified_diff(before, texts, _reasons(rounds), folder).decode(errors="backslashreplace")
        _print([f"for {package}, an installed package that --write leaves alone; `git apply` takes it in {folder}:"])
        print(shown, file=sys.stderr, end="")
    if options.write and ours:
        _write(rounds, before, ours)
    return CLEAN if rounds.is_proven and rounds.last.ending in ("ended", "time") else LEFT


def _announced(run_once: Runner) -> Runner:
    """Say before each run which one it is, above all that it prints."""
    numbers = itertools.count(1)

    def run(texts: Mapping[str, SourceText], own: frozenset[str]) -> Run:
        _print([f"run {next(numbers)}"])
        return run_once(texts, own)

    return run


def _runner(options: argparse.Namespace) -> Runner:
    words = options.script if options.module is None else ["-m", *options.module]
    if not words or words == ["-m"]:
        raise UsageError(
            "program-missing",
            "devtrace fix without a program",
            "it takes SCRIPT [ARG ...], -m MODULE [ARG ...] or a notebook",
            "name what to run",
        )
    if options.module is None and not os.path.exists(words[0]):
        raise UsageError(
            "script-missing",
            f"{words[0]!r}, which is not there",
            "devtrace fix takes a script, a notebook, or -m and a module",
            f"look where it is from {os.getcwd()}",
        )
    if options.module is None and words[0].endswith(".ipynb"):
        from devtrace.fixing.notebook import NotebookRunner

        return NotebookRunner(os.path.abspath(words[0]), options.simulate, options.timeout).run
    from devtrace.fixing.program import ProgramRunner

    return ProgramRunner(tuple(words), options.simulate, options.timeout).run


def _read(file: str) -> SourceText:
    kind = NotebookText if file.endswith(".ipynb") else SourceText
    return kind(file, Path(file).read_bytes())


def _first_text(rounds: Rounds, file: str) -> SourceText:
    return next(change.before[file] for change in rounds.changes if file in change.before)


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


def _reasons(rounds: Rounds) -> dict[str, list[tuple[int, Finding]]]:
    """Return, by file, the lines of each fix in the last text, and the finding that it fixes."""
    reasons: dict[str, list[tuple[int, Finding]]] = {}
    for change in rounds.changes:
        for file in change.after:
            moved = [(line_after(change, file, line), finding) for line, finding in reasons.get(file, [])]
            made = [(lines.start, change.finding) for lines in changed_blocks(change, file)]
            reasons[file] = [*moved, *made]
    return reasons


def _summary(rounds: Rounds, options: argparse.Namespace) -> Iterable[str]:
    last = rounds.last
    devices = pluralize(int(options.simulate.partition(":")[2] or 1), "simulated device")
    for change in rounds.changes:
        yield f"fixed: {change.finding.site}: {one_line(change.finding.message)}"
    if rounds.left is not None:
        yield f"left: {rounds.left.site}: {one_line(rounds.left.message)}"
        yield f"  {rounds.why_left}"
        if rounds.left.help:
            yield f"  {sentence('label.fix')}: {rounds.left.help}"
    elif last.error is not None:
        yield f"not proven: the last fix was not run, after {pluralize(len(rounds.runs), 'round')} (--rounds)"
    elif last.ending == "ended":
        what = "with the patch, " if rounds.changes else ""
        yield f"proven: {what}the program ran to its end on {devices}"
    elif last.ending == "time":
        limit = f"the time limit of {options.timeout:g} s"
        yield f"seen until {limit} on {devices}: no device error; what comes later was not run"
    else:
        yield f"no device error is left on {devices}, but the program ended early: {last.raised or 'by a signal'}"


def _write(rounds: Rounds, before: Mapping[str, SourceText], ours: Mapping[str, SourceText]) -> None:
    if not rounds.is_proven:
        _print(["nothing was written: --write needs a fix that is proven"])
        return
    write_all(before, ours)
    _print([f"written: {', '.join(relative(file) for file in ours)}"])


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        print(f"devtrace: {line}", file=sys.stderr)
