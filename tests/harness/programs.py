"""A program of the tests, how it is run, and what is expected of it.

A program is a file whose `run(device)` is called. `run(warm, path, arguments, mode)` runs it in a process of its own,
in one of the modes below. It gives back what the report says, as plain data: all tests of programs ask it.

    bug.py          the program, in `corpus/<cause>/<name>/`, `dtypes/programs/<cause>/<name>/`, `jobs/programs/...`
    fix.patch       what its author mended
    expected.json   the one finding, where the program fails; how often each line costs what, in `corpus/costs/`
    report.txt      the report's text (`make golden` writes it); report.zh.txt in Chinese

`why` of expected.json says why a second answer would be right too, or why the suggested fix is not the author's. A file
without expected.json has functions that say the same in comments: `# cause, tensor, dtype` above, their lines marked
`# born` and `# failed`, and `# untraced: cause` where the source alone shows another one.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import pickle
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stderr
from dataclasses import dataclass, field, replace
from functools import cached_property
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any, Literal

import numpy
import torch
from torch.utils import _pytree as pytree

import cases
import devtrace
from devtrace.api.results import Report, Trace
from devtrace.diagnosis.edits import applied
from devtrace.diagnosis.findings import Edit, Finding
from devtrace.diagnosis.saved_case import of_json
from devtrace.recording.context import hooks
from devtrace.trace.format import decode
from devtrace.words import language
from folders import TESTS
from loaded import loaded
from warm import SHARED, Warm

GPU = ("cuda:0",)
Mode = Literal[
    "recorded",  # on two simulated devices
    "zh",  # the same, with a report in Chinese
    "untraced",  # with the hooks alone, and its error explained afterwards
    "installed",  # after `devtrace.install()`: the text is all that was written meanwhile
    "plain",  # `run("cpu")` without devtrace: the values alone
    "genuine", "genuine untraced",  # on the accelerator, where a Python has it
]  # fmt: skip
_HEADER = re.compile(r"^--- (\S+)\n\+\+\+ \S+\n", re.M)
_HUNK = re.compile(r"@@ -(\d+)(,0)?")


@dataclass(frozen=True)
class Outcome:
    """Exception and report of a program."""

    raised: str = ""
    text: str = ""
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    without_line: tuple[str, ...] = ()  # ops of the backward pass that no line of the program ran
    values: list[Any] = field(default_factory=list)
    case: str = ""  # the text of the file of its case

    @property
    def errors(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.severity == "error"]

    @property
    def alarms(self) -> list[str]:
        """Errors and warnings, a line each."""
        bad = [finding for finding in self.findings if finding.severity != "note"]
        return [f"{finding.rule} at {finding.site}: {finding.message}" for finding in bad]


@dataclass(frozen=True)
class Program:
    """A file, how it is run, and what is expected of it; without arguments it is run as a script."""

    path: Path
    called: tuple[str, ...] | None = None
    simulate: str = "cuda:2"
    packages: tuple[Path, ...] = ()
    imported_before: tuple[str, ...] = ()
    function: str = "run"

    @property
    def folder(self) -> Path:
        return self.path.parent

    @property
    def cause(self) -> str:
        return self.folder.parent.name

    @property
    def name(self) -> str:
        if self.function != "run":
            return self.function
        return self.folder.name if self.path.stem == "bug" else self.path.stem

    @cached_property
    def expected(self) -> dict[str, Any]:
        file = self.folder / "expected.json"
        found: dict[str, Any] = json.loads(file.read_text()) if file.exists() else self._expected_in_comments()
        return found

    def _expected_in_comments(self) -> dict[str, Any]:
        lines = self.path.read_text().splitlines()
        headings = [at for at, line in enumerate(lines) if line.startswith("# ") and "untraced" not in line]
        at = next(at for at, line in enumerate(lines) if line.startswith(f"def {self.function}("))
        begin = max((heading for heading in headings if heading < at), default=0)
        end = min((heading for heading in headings if heading > at), default=len(lines))
        cause, _, rest = lines[begin].removeprefix("# ").partition(", ")
        culprit, _, dtype = rest.rpartition(", ")
        marked = {word: at + 1 for at in range(begin, end) for word in lines[at].partition("  # ")[2].split()}
        sites = {word: f"{self.path.name}:{marked[word]}" for word in {"born", "failed"} & marked.keys()}
        _, _, untraced = lines[begin + 1].partition("# untraced: ")
        return {"cause": cause, "culprit": culprit, "dtype": dtype, **sites, "untraced": untraced or cause}

    @property
    def arguments(self) -> tuple[str, ...]:
        host = ("cpu",) if "dtypes" in self.path.parts else GPU
        return self.called if self.called is not None else tuple(self.expected.get("arguments", host))

    def outcome(self, warm: Warm, mode: Mode = "recorded") -> Outcome:
        return run(warm, self.path, self.arguments, mode, self.function)

    def edited(self, edits: Iterable[Edit], folder: Path) -> Program:
        """Copy the program, with the files of a folder of its own, with edits."""
        for path in self.folder.glob("*.py" if self.path.stem == "bug" else self.path.name):
            of_file = [edit for edit in edits if Path(edit.file).name == path.name]
            (folder / path.name).write_text(applied(path.read_text(), of_file))
        return Program(folder / self.path.name, self.arguments, function=self.function)

    def with_fix(self, folder: Path) -> Program:
        """Copy the program, with its author's fix."""
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        for name, hunks in self.patches.items():
            (folder / name).write_text(patched((folder / name).read_text(), hunks))
        return Program(folder / self.path.name, self.arguments)

    @property
    def patches(self) -> dict[str, str]:
        """Return the hunks of fix.patch by file."""
        _, *parts = _HEADER.split((self.folder / "fix.patch").read_text())
        return dict(zip(parts[::2], parts[1::2], strict=True))

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


def patched(text: str, hunks: str) -> str:
    """Apply the hunks of a unified diff."""
    lines = text.splitlines(keepends=True)
    result: list[str] = []
    done = 0
    for line in hunks.splitlines(keepends=True):
        if hunk := _HUNK.match(line):
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


Said = tuple[str, tuple[Finding, ...], tuple[str, ...]]
"""Text, findings and notes of a report."""


@dataclass(frozen=True)
class Ran:
    """A program that ran: what its process knows, and the text of the file of its case, of which its report is made."""

    raised: str
    case: str
    said: Said | None = None  # in its own process, in English; None once it was compared
    without_line: tuple[str, ...] = ()
    values: list[Any] = field(default_factory=list)


_outcomes: dict[tuple[str, Mode], Outcome] = {}


def run(
    warm: Warm, path: Path, arguments: tuple[str, ...] = GPU, mode: Mode = "recorded", function: str = "run"
) -> Outcome:
    """Return what a program gives in a mode, made of its case: it runs again when what records it has changed."""
    as_run: Mode = "recorded" if mode == "zh" else mode
    sources = {file.name: file.read_text(encoding="utf-8") for file in sorted(path.parent.glob("*.py"))}
    place = str(path) if function == "run" else f"{path}::{function}"
    key = hashlib.sha256(json.dumps([as_run, place, arguments, sources]).encode()).hexdigest()
    is_kept = path.is_relative_to(TESTS) and as_run in ("recorded", "untraced")
    file = (cases.folder() if is_kept else SHARED.folder or Path(mkdtemp())) / key
    if (key, mode) not in _outcomes and not file.exists():
        given = warm.call("programs", "ran", as_run, place, *arguments)
        _outcomes[key, as_run] = outcome_of(given, as_run)
        _keep(file, given)
    if (key, mode) not in _outcomes:
        _outcomes[key, mode] = outcome_of(pickle.loads(file.read_bytes()), mode)
    return _outcomes[key, mode]


def _keep(file: Path, given: Ran | Outcome) -> None:
    """Write what a program gave, for other workers too; of a report that was compared there is no need any more."""
    part = file.with_suffix(f".{os.getpid()}")
    part.write_bytes(pickle.dumps(replace(given, said=None) if isinstance(given, Ran) else given))
    part.replace(file)


def outcome_of(given: Ran | Outcome, mode: Mode) -> Outcome:
    """Diagnose the case of a program that ran elsewhere; its own process must have said the same, to the letter."""
    if isinstance(given, Outcome):
        return given
    with speaking("zh" if mode == "zh" else "en"):
        found = _said(diagnosed(given.case))
    assert given.said in (None, found)
    return Outcome(given.raised, *found, given.without_line, given.values, given.case)


@contextmanager
def speaking(of: language.Language) -> Iterator[None]:
    """Make reports in a language for a while."""
    before, language.CHOICE.user = language.CHOICE.user, of
    try:
        yield
    finally:
        language.CHOICE.user = before


def diagnosed(case: str) -> Report:
    """Return the report that is made of the text of a case's file."""
    data = json.loads(case)
    return devtrace.diagnose(replace(Trace.of(decode(data)), case=of_json(data["case"])))


def _said(report: Report) -> Said:
    return report.text, report.findings, report.notes


def ran(mode: Mode, place: str, *arguments: str) -> Ran | Outcome:
    """Do in the forked process what `run` promises."""
    torch.manual_seed(0)
    devices = nullcontext() if "genuine" in mode else devtrace.simulate("cuda:2")
    if mode == "plain":
        return Outcome(values=_values(function_of(place)("cpu")))
    if mode == "installed":
        return _installed(place, arguments, devices)
    return (_untraced if "untraced" in mode else _recorded)(place, arguments, devices)


def _recorded(place: str, arguments: tuple[str, ...], devices: AbstractContextManager[object]) -> Ran:
    raised, values = "", []
    try:
        with devices:
            with devtrace.record() as recording:
                result = function_of(place)(*arguments)
            values = _values(result)
    except Exception as error:  # noqa: BLE001 (the program's own failure is what is studied)
        raised = f"{type(error).__name__}: {error}"
    lost = tuple(op.name for op in recording.trace.ops if op.phase == "backward" and op.site is None)
    return Ran(raised, saved(recording.report), _said(recording.report), lost, values)


def _untraced(place: str, arguments: tuple[str, ...], devices: AbstractContextManager[object]) -> Ran | Outcome:
    hooks.install()
    with devices:
        try:
            function_of(place)(*arguments)
        except Exception as error:  # noqa: BLE001 (as above)
            raised, report = f"{type(error).__name__}: {error}", devtrace.explain(error)
            if report.trace.case is None:  # nothing is said of it
                return Outcome(raised, report.text, report.findings, report.notes)
            return Ran(raised, saved(report), _said(report))
    return Outcome()


def saved(report: Report) -> str:
    """Return the text of the file of a report's case."""
    with TemporaryDirectory() as folder:
        return report.trace.save(Path(folder) / "case.devtrace", case=True).read_text(encoding="utf-8")


def _installed(place: str, arguments: tuple[str, ...], devices: AbstractContextManager[object]) -> Outcome:
    with redirect_stderr(StringIO()) as written, devices:
        devtrace.install()
        function_of(place)(*arguments)
        devtrace.uninstall()
    return Outcome(text=written.getvalue())


def function_of(place: str) -> Callable[..., object]:
    """Return a program, `path` or `path::function` of a file with several."""
    path, _, function = place.partition("::")
    found: Callable[..., object] = getattr(program_of(path), function or "run")
    return found


def program_of(path: str) -> Any:
    torch.set_num_threads(1)  # the programs are small; threads that wait for each other cost more on a busy machine
    sys.path.insert(0, str(Path(path).parent))
    releases = Path(sys.prefix) / "releases" / Path(path).parent.name  # a package of another version (`make real`)
    if releases.is_dir():
        sys.path.insert(0, str(releases))
    return loaded(path)


def _values(result: Any) -> list[Any]:
    leaves = pytree.tree_leaves(result)
    return [numpy.array(leaf.detach().cpu()) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]


def pseudo_report_of(path: str) -> list[tuple[str, str, tuple[str, ...]]]:
    """Return message, help and the words beside the lines of each finding, every sentence in brackets."""
    from sentences import wrap_all

    wrap_all(setattr)
    found = outcome_of(ran("recorded", path, *GPU), "recorded").findings
    return [
        (
            each.message,
            each.help,
            tuple(filter(None, (word for line in each.lines for word in (line.label, line.remark)))),
        )
        for each in found
    ]


def facts_in(of: language.Language, file: str) -> tuple[str, list[str]]:
    """Return the text of what `report()` of a file gives, and the rules and causes of what it says, notes included."""
    language.CHOICE.user = of
    report: Report = program_of(file).report()
    said = [finding for finding in report.findings if finding.severity != "note" or finding.holders or finding.help]
    return report.text, [slug for finding in said for slug in (finding.rule, finding.cause)]
