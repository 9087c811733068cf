"""The programs of `corpus/<cause>/<program>/`: a device bug, its patch, and what the report must say of it.

    bug.py          the program; its `run()` is called with `arguments` (cuda:0)
    fix.patch       what its author mended
    expected.json   one finding, where the program fails; how often each line costs what, in `costs/`
    report.txt      the report's text (`make golden` writes it); report.zh.txt in Chinese, of the shortest programs

`why` of expected.json says why a second answer would be right too, or why the suggested fix is not the author's.
"""

from __future__ import annotations

import difflib
import json
import re
import shutil
from collections import Counter
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import pytest

from devtrace.diagnosis.findings import Finding, Site
from folders import TESTS
from programs import Outcome, run, run_untraced
from warm import Warm

CORPUS = TESTS / "corpus"
DTYPES = TESTS / "dtypes" / "programs"
COSTS = "costs"
HEADER = re.compile(r"^--- (\S+)\n\+\+\+ \S+\n", re.M)
HUNK = re.compile(r"@@ -(\d+)(,0)?")


@dataclass(frozen=True)
class Program:
    """One folder of the corpus."""

    folder: Path

    @property
    def cause(self) -> str:
        return self.folder.parent.name

    @property
    def name(self) -> str:
        return self.folder.name

    @cached_property
    def expected(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "expected.json").read_text())
        return found

    @property
    def arguments(self) -> tuple[str, ...]:
        return tuple(self.expected.get("arguments", ["cuda:0"]))

    @property
    def patches(self) -> dict[str, str]:
        """Return the hunks of fix.patch by file."""
        _, *parts = HEADER.split((self.folder / "fix.patch").read_text())
        return dict(zip(parts[::2], parts[1::2], strict=True))

    def outcome(self, warm: Warm) -> Outcome:
        return outcome_of_bug(self, warm)

    def outcome_untraced(self, warm: Warm) -> Outcome:
        return outcome_of_bug_untraced(self, warm)

    def with_fix(self, folder: Path) -> Path:
        """Copy the program, with its author's fix."""
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        for name, hunks in self.patches.items():
            (folder / name).write_text(patched((folder / name).read_text(), hunks))
        return folder / "bug.py"

    def lines_of_fix(self) -> set[str]:
        """Return the lines that the author changed; of an insertion, its neighbours."""
        changed: set[str] = set()
        for name, hunks in self.patches.items():
            old = (self.folder / name).read_text()
            pairs = difflib.SequenceMatcher(None, old.splitlines(), patched(old, hunks).splitlines(), autojunk=False)
            for kind, start, end, _, _ in pairs.get_opcodes():
                if kind != "equal":
                    first, last = (start, start + 1) if start == end else (start + 1, end)
                    changed |= {f"{name}:{line}" for line in range(first, last + 1)}
        return changed


@cache
def outcome_of_bug(program: Program, warm: Warm) -> Outcome:
    """Run a program once for all tests that ask about it."""
    return run(warm, program.folder / "bug.py", program.arguments)


@cache
def outcome_of_bug_untraced(program: Program, warm: Warm) -> Outcome:
    """Run a program once with the hooks alone, and explain its error."""
    return run_untraced(warm, program.folder / "bug.py", program.arguments)


def dtype_programs() -> list[Program]:
    """Return the programs that fail over a dtype, on any device."""
    return [Program(path.parent) for path in sorted(DTYPES.glob("*/*/bug.py"))]


def patched(text: str, hunks: str) -> str:
    """Apply the hunks of a unified diff."""
    lines = text.splitlines(keepends=True)
    result: list[str] = []
    done = 0
    for line in hunks.splitlines(keepends=True):
        if hunk := HUNK.match(line):
            start = int(hunk[1]) - (hunk[2] is None)
            result += lines[done:start]
            done = start
        elif line.startswith("+"):
            result.append(line[1:])
        else:
            assert lines[done] == line[1:]
            result += [line[1:]] * line.startswith(" ")
            done += 1
    return "".join([*result, *lines[done:]])


def one_a_cause(programs: list[Program]) -> pytest.MarkDecorator:
    """Ask the first program of each cause and what costs time, and the others where there is time for them."""
    first = {program.cause: program for program in reversed(programs)}
    cases = [
        pytest.param(
            program,
            marks=() if program.cause == COSTS or program == first[program.cause] else pytest.mark.another,
            id=program.name,
        )
        for program in programs
    ]
    return pytest.mark.parametrize("program", cases)


def at(site: Site | None) -> str:
    assert site is not None
    return f"{Path(site.file).name}:{site.line}"


def summary(finding: Finding) -> dict[str, Any]:
    """Return what expected.json says of a finding, as the diagnosis says it."""
    assert finding.culprit is not None
    return {
        "rule": finding.rule,
        "culprit": finding.culprit.name,
        "devices": [*finding.devices],
        "born": at(finding.culprit.born),
        "failed": at(finding.site),
        "fix": [f"{Path(edit.file).name}:{edit.line}" for edit in finding.edits],
    }


def costs_of(outcome: Outcome) -> Counter[str]:
    """Return how often each rule counted each line of a program that runs to its end."""
    assert (outcome.raised, outcome.errors) == ("", [])
    counts: Counter[str] = Counter()
    for finding in outcome.findings:
        counts[f"{at(finding.site)} {finding.rule}"] += finding.count
    return counts


PROGRAMS = [Program(path.parent) for path in sorted(CORPUS.glob("*/*/bug.py"))]
FAILING = [program for program in PROGRAMS if program.cause != COSTS]
SHOWN_IN_CHINESE = [
    program
    for cause in sorted({program.cause for program in PROGRAMS})
    for program in sorted(
        (each for each in PROGRAMS if each.cause == cause),
        key=lambda each: (len((each.folder / "bug.py").read_text()), each.name),
    )[: None if cause == COSTS else 2]
]
COSTLY = [program for program in PROGRAMS if program.cause == COSTS]
