"""Applies the offered edits to a program and runs it again, round by round, until nothing is left or nothing helps.

No file is changed: the texts with the edits lie over the files of the process that runs the program.
"""

from __future__ import annotations

import importlib.util
import json
import linecache
import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any, Literal

import torch

import devtrace
from devtrace.diagnosis.edits import applied
from devtrace.diagnosis.findings import Edit, Finding
from warm import Warm

MOST_ROUNDS = 8
Ending = Literal["repaired", "same line", "new error", "no edit", "no device error", "too many rounds"]


@dataclass(frozen=True)
class Program:
    """A file, how it is run, and on which simulated devices; without arguments it is run as a script."""

    path: Path
    arguments: tuple[str, ...] = ()
    simulate: str = "cuda:2"
    packages: tuple[Path, ...] = ()
    imported_before: tuple[str, ...] = ()


@dataclass(frozen=True)
class Round:
    """One run: what it raised, and the finding that explains it."""

    raised: str
    finding: Finding | None

    @property
    def edits(self) -> tuple[Edit, ...]:
        return self.finding.edits if self.finding is not None else ()

    @property
    def failed_at(self) -> tuple[str, int]:
        site = self.finding.site if self.finding is not None else None
        return (site.file, site.line) if site is not None else ("", 0)


@dataclass(frozen=True)
class Repair:
    """End of a program, all of its runs, and the texts of the files that were edited."""

    ending: Ending
    rounds: tuple[Round, ...]
    texts: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        last = self.rounds[-1]
        lines = [f"{self.ending} after {len(self.rounds) - 1} rounds"]
        for each in self.rounds:
            lines += [f"  {os.path.basename(each.failed_at[0])}:{each.failed_at[1]} {each.raised[:110]!r}"] * bool(
                each.raised
            )
            lines += [
                f"    {os.path.basename(e.file)}:{e.line} {e.before.strip()!r} -> {e.after.strip()!r}"
                for e in each.edits
            ]
        if last.finding is not None and not last.edits:
            lines.append(f"  help: {last.finding.help}")
        return "\n".join(lines)


def repair(warm: Warm, program: Program) -> Repair:
    """Run a program with the edits of each round, until it ends well or an edit does not help."""
    texts: dict[str, str] = {}
    rounds = [_run(warm, program, texts)]
    while rounds[-1].raised and len(rounds) <= MOST_ROUNDS:
        last = rounds[-1]
        if not last.edits:
            return Repair("no edit" if last.finding is not None else "no device error", tuple(rounds), texts)
        texts = _with_edits(texts, last.edits)
        rounds.append(_run(warm, program, texts))
        bad = _not_helped(last, rounds[-1])
        if bad is not None:
            return Repair(bad, tuple(rounds), texts)
    return Repair("too many rounds" if rounds[-1].raised else "repaired", tuple(rounds), texts)


def _not_helped(before: Round, after: Round) -> Ending | None:
    """Return what is wrong with a round's edits, if anything is."""
    if not after.raised:
        return None
    if after.finding is None:
        return "new error"
    file, line = before.failed_at
    for edit in before.edits:
        if edit.file == file and edit.line < line and not edit.before:
            line += edit.after.count("\n") + 1
        elif edit.file == file and edit.line < before.failed_at[1] and edit.before:
            line += (edit.after.count("\n") + bool(edit.after)) - (edit.before.count("\n") + 1)
    return "same line" if after.failed_at == (file, line) else None


def _with_edits(texts: Mapping[str, str], edits: Sequence[Edit]) -> dict[str, str]:
    result = dict(texts)
    for file in {edit.file for edit in edits}:
        text = result.get(file) or Path(file).read_text(encoding="utf-8")
        result[file] = applied(text, [edit for edit in edits if edit.file == file])
    return result


def _run(warm: Warm, program: Program, texts: Mapping[str, str]) -> Round:
    asked = {
        "path": str(program.path),
        "arguments": program.arguments,
        "simulate": program.simulate,
        "packages": [str(path) for path in program.packages],
        "imported_before": program.imported_before,
        "texts": texts,
    }
    result = warm.call("repair", "round_of", json.dumps(asked))
    assert isinstance(result, Round)
    return result


def round_of(asked: str) -> Round:
    """Do in the forked process what `_run` promises."""
    program = json.loads(asked)
    _lay_over(program["texts"])
    prepare(program)
    raised = ""
    try:
        with devtrace.record(simulate=program["simulate"]) as recording:
            execute(program["path"], program["arguments"])
    except Exception as error:  # noqa: BLE001 (the program's own failure is what is studied)
        raised = f"{type(error).__name__}: {error}"
    errors = [finding for finding in devtrace.diagnose(recording.trace).findings if finding.severity == "error"]
    return Round(raised, errors[0] if errors else None)


def prepare(program: Mapping[str, Any]) -> None:
    """Make paths, seeds and imports of a program as it wants them."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    warnings.filterwarnings("ignore")
    sys.path[:0] = [*program["packages"], str(Path(program["path"]).parent)]
    for name in program["imported_before"]:
        importlib.import_module(name)


def execute(path: str, arguments: Sequence[str]) -> Any:
    """Run a file, and its `run` if there are arguments; return what that returns."""
    name = "program" if arguments else "__main__"
    sys.argv = [path]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module.run(*arguments) if arguments else None


def _lay_over(texts: Mapping[str, str]) -> None:
    """Let imports and source lines of files come from these texts."""
    own = SourceFileLoader.get_data, SourceFileLoader.path_stats

    def get_data(loader: SourceFileLoader, path: str) -> bytes:
        return texts[path].encode() if path in texts else own[0](loader, path)

    def path_stats(loader: SourceFileLoader, path: str) -> Mapping[str, Any]:
        if path in texts:
            raise OSError("no compiled file is of this text")
        return own[1](loader, path)

    patched: Any = SourceFileLoader
    patched.get_data, patched.path_stats = get_data, path_stats
    for path, text in texts.items():
        linecache.cache[path] = len(text), None, text.splitlines(keepends=True), path
