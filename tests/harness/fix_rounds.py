"""The rounds of `devtrace fix`, each in a fork of one Python that has torch loaded instead of a process of its own."""

from __future__ import annotations

import importlib
import json
import os
import re
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import devtrace
from devtrace.contract.findings_json import counts_of, peaks_of, raised
from devtrace.diagnosis.findings import Edit
from devtrace.fixing.compared import ReferenceRun
from devtrace.fixing.costs import Costs
from devtrace.fixing.rounds import ProgramRun, Rounds
from devtrace.fixing.source_text import SourceText
from devtrace.fixing.values import values_of
from devtrace.runtime import overlay
from devtrace.runtime.device_spec import ONE_DEVICE, count_of
from devtrace.source.user_code import OWN_PACKAGES
from loaded import loaded
from programs import Program
from warm import Warm


@dataclass(frozen=True)
class Outcome:
    """One run, and what the program returned."""

    run: ProgramRun
    value: str


def cheaper(warm: Warm, program: Program) -> Costs:
    """Do what `devtrace fix --costs` does with a program, without printing."""
    costs = Costs(fixed(warm, program)[0])
    costs.go()
    return costs


def fixed(warm: Warm, program: Program) -> tuple[Rounds, str]:
    """Do what `devtrace fix` does with a program, without printing; return what the last run returned, too."""
    known: dict[int, str] = {}

    def run(texts: Mapping[str, SourceText], own: frozenset[str]) -> ProgramRun:
        ran = outcome(warm, program, texts, own)
        known[id(ran.run)] = ran.value
        return ran.run

    reference = ReferenceRun(lambda: outcome(warm, program, {}, one_device=True).run)
    rounds = Rounds(run, _read, reference=reference)
    rounds.go()
    return rounds, known[id(rounds.last)]


def outcome(
    warm: Warm,
    program: Program,
    texts: Mapping[str, SourceText],
    own: frozenset[str] = frozenset(),
    *,
    one_device: bool = False,
) -> Outcome:
    """Run a program once, with other texts for some files."""
    asked = {
        "path": str(program.path),
        "arguments": program.arguments,
        "simulate": f"cuda:{count_of(program.simulate)}" if one_device else program.simulate,
        "packages": [str(path) for path in program.packages],
        "imported_before": program.imported_before,
        "texts": {file: text.data.decode("latin-1") for file, text in texts.items()},
        "own": sorted(own),
        "variables": {ONE_DEVICE: "1"} if one_device else {},
    }
    result = warm.call("fix_rounds", "outcome_of", json.dumps(asked))
    assert isinstance(result, Outcome)
    return result


def story(rounds: Rounds) -> str:
    """Return the edits of all rounds, and how they ended, for a person to read."""
    lines = [_shown(edit) for change in rounds.changes for edit in change.finding.edits]
    if rounds.left is not None:
        left = rounds.left
        lines += [f"    left at {left.site}: {left.message}", f"    {rounds.why_left}; {left.help}"]
        lines += [f"    tried {_shown(edit).strip()}" for edit in left.edits]
    return "\n".join([*lines, f"    {rounds.last.ending} {rounds.last.raised}"])


def _shown(edit: Edit) -> str:
    return f"    {Path(edit.file).name}:{edit.line} {edit.before.strip()!r} -> {edit.after.strip()!r}"


def _read(file: str) -> SourceText:
    return SourceText(file, Path(file).read_bytes())


def outcome_of(asked: str) -> Outcome:
    """Do in the forked process what `outcome` promises."""
    program = json.loads(asked)
    os.environ.update(program["variables"], **{OWN_PACKAGES: ",".join(program["own"])})
    overlay.use({file: text.encode("latin-1") for file, text in program["texts"].items()})
    prepare(program)
    error: Exception | None = None
    value: Any = None
    try:
        with devtrace.record(simulate=program["simulate"] or None) as recording:
            value = execute(program["path"], program["arguments"])
            recording.stop()
            left = values_of({"returned": value} if program["arguments"] else vars(sys.modules["__main__"]))
    except Exception as caught:  # noqa: BLE001 (the program's own failure is what is studied)
        error = caught
    report = devtrace.diagnose(recording.trace)
    findings, crossings = sorted(report.findings, key=lambda each: each.op), sum(counts_of(report).values())
    if error is None:
        peaks = peaks_of([report])
        return Outcome(
            ProgramRun("ended", tuple(findings), values=left, crossings=crossings, peaks=peaks), as_text(value)
        )
    lines = tuple((str(file), None, int(line)) for file, line in raised(error)["lines"])
    return Outcome(ProgramRun("raised", tuple(findings), f"{type(error).__name__}: {error}", lines), "")


def prepare(program: Mapping[str, Any]) -> None:
    """Make paths, seeds and imports of a program as it wants them."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    warnings.filterwarnings("ignore")
    sys.path[:0] = [*program["packages"], str(Path(program["path"]).parent)]
    for name in program["imported_before"]:
        importlib.import_module(name)


def execute(path: str, arguments: Sequence[str]) -> Any:
    """Run a file, and its `run` or `main` if there are arguments; return what that returns."""
    sys.argv = [path]
    module = loaded(path, "program" if arguments else "__main__")
    return getattr(module, "run" if hasattr(module, "run") else "main")(*arguments) if arguments else None


def as_text(value: Any) -> str:
    """Return a value as text that does not say where it is."""
    torch.set_printoptions(precision=6, threshold=100_000)
    return re.sub(r",? ?(device='[^']*'|grad_fn=<[^>]*>)", "", re.sub(r"cuda:\d", "cpu", repr(value)))
