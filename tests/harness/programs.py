"""Runs a program under devtrace in a process of its own; gives back what its report says, as plain data."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import pickle
import sys
from contextlib import nullcontext, redirect_stderr
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

import numpy
import torch
from torch.utils import _pytree as pytree

import devtrace
from devtrace.api.results import Report
from devtrace.diagnosis.findings import Finding
from devtrace.recording.context import hooks
from devtrace.report import parts
from devtrace.report.text import text
from devtrace.words import language
from warm import SHARED, Warm

WIDTHS = (60, 80, 100, 120)


@dataclass(frozen=True)
class Outcome:
    """Exception and report of a program."""

    raised: str
    text: str
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    without_line: tuple[str, ...]  # ops of the backward pass that no line of the program ran
    values: list[Any] = field(default_factory=list)
    by_width: dict[int, str] = field(default_factory=dict)  # the text in so many columns

    @property
    def errors(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.severity == "error"]

    @property
    def alarms(self) -> list[str]:
        """Errors and warnings, a line each."""
        bad = [finding for finding in self.findings if finding.severity != "note"]
        return [f"{finding.rule} at {finding.site}: {finding.message}" for finding in bad]


def run(warm: Warm, path: Path, arguments: tuple[str, ...] = ("cuda:0",)) -> Outcome:
    """Call `run(*arguments)` of a file on simulated devices."""
    outcome = _shared(warm, "outcome_of", path, *arguments)
    assert isinstance(outcome, Outcome)
    return outcome


def run_in(of: language.Language, warm: Warm, path: Path, arguments: tuple[str, ...] = ("cuda:0",)) -> Outcome:
    """Do the same in a language."""
    outcome = run(warm, path, arguments) if of == "en" else _shared(warm, "outcome_in_chinese", path, *arguments)
    assert isinstance(outcome, Outcome)
    return outcome


def _shared(warm: Warm, function: str, path: Path, *arguments: str) -> Any:
    """Return what a fork gives for a program, or gave before in this session, to whichever test of whichever worker."""
    sources = {file.name: file.read_text(encoding="utf-8") for file in sorted(path.parent.glob("*.py"))}
    key = hashlib.sha256(json.dumps([function, str(path), arguments, sources]).encode()).hexdigest()
    kept = SHARED.folder / key if SHARED.folder else None
    if kept is not None and kept.exists():
        return pickle.loads(kept.read_bytes())
    given = warm.call("programs", function, str(path), *arguments)
    if kept is not None:
        part = kept.with_suffix(f".{os.getpid()}")
        part.write_bytes(pickle.dumps(given))
        part.replace(kept)
    return given


def run_plain(warm: Warm, path: Path) -> list[Any]:
    """Return what `run("cpu")` of a file gives, without devtrace."""
    values = warm.call("programs", "plain_values", str(path))
    assert isinstance(values, list)
    return values


def run_untraced(warm: Warm, path: Path, arguments: tuple[str, ...] = ("cuda:0",)) -> Outcome:
    """Do the same with the hooks alone, and explain the error afterwards."""
    outcome = _shared(warm, "outcome_untraced_of", path, *arguments)
    assert isinstance(outcome, Outcome)
    return outcome


def outcome_of(path: str, *arguments: str) -> Outcome:
    """Do in the forked process what `run` promises."""
    return outcome(path, arguments, simulate="cuda:2")


def outcome_in_chinese(path: str, *arguments: str) -> Outcome:
    """Do the same in Chinese."""
    language.CHOICE.user = "zh"
    return outcome_of(path, *arguments)


def outcome(path: str, arguments: tuple[str, ...], *, simulate: str | None) -> Outcome:
    """Call `run(*arguments)` of a file in this process."""
    raised, values = "", []
    try:
        with devtrace.simulate(simulate) if simulate else nullcontext():
            with devtrace.record() as recording:
                result = program_of(path).run(*arguments)
            values = _values(result)
    except Exception as error:  # noqa: BLE001 (the program's own failure is what is studied)
        raised = f"{type(error).__name__}: {error}"
    report: Report = devtrace.diagnose(recording.trace)
    lost = tuple(op.name for op in recording.trace.ops if op.phase == "backward" and op.site is None)
    by_width = {width: text(report, width) for width in WIDTHS}
    return Outcome(raised, report.text, report.findings, report.notes, lost, values, by_width)


def pseudo_report_of(path: str) -> list[tuple[str, str, tuple[str, ...]]]:
    """Return message, help and the words beside the lines of each finding, every sentence in brackets."""
    from sentences import wrap_all

    wrap_all(setattr)
    found = outcome_of(path, "cuda:0").findings
    return [
        (
            each.message,
            each.help,
            tuple(filter(None, (word for line in each.lines for word in (line.label, line.remark)))),
        )
        for each in found
    ]


def plain_values(path: str) -> list[Any]:
    """Do in the forked process what `run_plain` promises."""
    return _values(program_of(path).run("cpu"))


def program_of(path: str) -> Any:
    torch.set_num_threads(1)  # the programs are small; threads that wait for each other cost more on a busy machine
    sys.path.insert(0, str(Path(path).parent))
    releases = Path(sys.prefix) / "releases" / Path(path).parent.name  # a package of another version (`make real`)
    if releases.is_dir():
        sys.path.insert(0, str(releases))
    spec = importlib.util.spec_from_file_location("program", path)
    assert spec is not None
    assert spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    sys.modules["program"] = program
    spec.loader.exec_module(program)
    return program


def _values(result: Any) -> list[Any]:
    leaves = pytree.tree_leaves(result)
    return [numpy.array(leaf.detach().cpu()) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]


def run_installed(warm: Warm, path: Path, arguments: tuple[str, ...] = ("cuda:0",)) -> str:
    """Do the same with `devtrace.install()`; return all that was written meanwhile."""
    written = warm.call("programs", "written_installed", str(path), *arguments)
    assert isinstance(written, str)
    return written


def written_installed(path: str, *arguments: str) -> str:
    """Do in the forked process what `run_installed` promises."""
    with redirect_stderr(StringIO()) as written, devtrace.simulate("cuda:2"):
        devtrace.install()
        program_of(path).run(*arguments)
        devtrace.uninstall()
    return written.getvalue()


def outcome_untraced_of(path: str, *arguments: str) -> Outcome:
    """Do in the forked process what `run_untraced` promises."""
    return outcome_untraced(path, arguments, simulate="cuda:2")


def outcome_untraced(path: str, arguments: tuple[str, ...], *, simulate: str | None) -> Outcome:
    """Call `run(*arguments)` of a file in this process with the hooks alone, and explain its error."""
    hooks.install()
    with devtrace.simulate(simulate) if simulate else nullcontext():
        try:
            program_of(path).run(*arguments)
        except Exception as error:  # noqa: BLE001 (as above)
            report = devtrace.explain(error)
            return Outcome(f"{type(error).__name__}: {error}", report.text, report.findings, report.notes, ())
    return Outcome("", "", (), (), ())


def facts_in(of: language.Language, file: str) -> tuple[str, list[str]]:
    """Return the text of what `report()` of a file gives, and the rules and causes of what it shows."""
    language.CHOICE.user = of
    report: Report = program_of(file).report()
    shown = [finding for _, finding in parts.shown(report)]
    return report.text, [slug for finding in shown for slug in (finding.rule, finding.cause)]
