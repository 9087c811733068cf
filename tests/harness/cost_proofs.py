"""The proof of `devtrace fix --costs` in this process: for edits that devtrace offers, and for advice followed by hand.

A program of `tests/costs/programs/` is a function, with a comment above it and what else it needs. It marks the line of
its larger cost with `# 1`, that of the lesser with `# 2`. Where devtrace advises in words, it has the lines of somebody
who followed them behind `#1> `; `# -1` marks what they replace.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

import devtrace
from devtrace.diagnosis.findings import Edit, Finding, ReportData
from devtrace.fixing.costs import Costs
from devtrace.fixing.rounds import ProgramRun, Rounds
from devtrace.fixing.source_text import SourceText
from devtrace.fixing.values import values_of
from loaded import module_of


@dataclass
class Proofs:
    """A program as it is, in a file of its own, and what one fix of it does at a time. `report` is of the last run."""

    path: Path
    text: str
    function: str = "run"
    report: ReportData = field(init=False)
    costs: Costs = field(init=False)

    def __post_init__(self) -> None:
        self.costs = Costs(
            Rounds(lambda texts, own: self.run(texts), lambda file: SourceText(file, self.text.encode()))
        )
        self.costs.rounds.go()

    def run(self, texts: Mapping[str, SourceText]) -> ProgramRun:
        changed = texts.get(str(self.path))
        module = module_of(self.path, changed.data.decode() if changed is not None else self.text)
        torch.manual_seed(0)
        with devtrace.record(simulate="cuda:1") as recording:
            value = getattr(module, self.function)("cuda:0")
        self.report = recording.report
        assert not self.report.notes
        findings = sorted(self.report.findings, key=lambda each: each.op)
        return ProgramRun("ended", tuple(findings), values=values_of({"returned": value}))

    @property
    def warnings(self) -> list[Finding]:
        return [finding for finding in self.report.findings if finding.severity == "warning"]

    def why_not(self, finding: Finding, by_hand: str = "") -> str:
        """Return why a fix, or the text of somebody who followed its advice, is none; then take it back."""
        if by_hand:
            edit = Edit(str(self.path), None, 1, self.text.rstrip("\n"), by_hand.rstrip("\n"))
            finding = replace(finding, edits=(edit,))
        before = self.costs.rounds.last
        why = self.costs.why_not(finding)
        if not why:
            self.costs.rounds.changes.pop()
            self.costs.rounds.last = before
        return why


def run(path: Path, text: str) -> tuple[Any, ReportData]:
    """Return what `main` of a text gives, and the report on it."""
    module = module_of(path, text)
    with devtrace.record(simulate="cuda:1") as recording:
        value = module.main("cuda:0")
        value = value.tolist() if isinstance(value, torch.Tensor) else value
    assert not recording.report.notes
    return value, recording.report


def paid(report: ReportData) -> int:
    """Return how many waits and copies there were."""
    return sum(row.syncs + row.copies for row in report.ledger)


def texts_in(folder: Path) -> dict[str, str]:
    """Return the text of each program in the files of a folder, with the imports of its file."""
    parts = [file.read_text().split("\n\n\n# ") for file in sorted(folder.glob("*.py"))]
    texts = [f"{imports}\n\n\n# {program}" for imports, *programs in parts for program in programs]
    return {name: text for text in texts for name in re.findall(r"^def (\w+)\(device", text, re.M)}


def mark_of(text: str, finding: Finding) -> str:
    """Return the number of the cost that a finding is of, or an empty text."""
    assert finding.site is not None
    marked = re.search(r"  # (\d)$", text.splitlines()[finding.site.line - 1])
    return marked[1] if marked is not None else ""


def followed(text: str, number: str) -> str:
    """Return the text after its advice on a cost was followed by hand; an empty text if it has none."""
    if f"#{number}> " not in text:
        return ""
    kept = [line for line in text.splitlines() if not re.search(rf"  # -?{number}$", line)]
    return "\n".join(re.sub(rf"^( *)#{number}> ", r"\1", line) for line in kept) + "\n"
