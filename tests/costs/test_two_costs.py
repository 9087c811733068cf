"""Twenty programs with two costs each: the larger one comes first, a statement has one warning, a fix ends its cost."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from cost_proofs import paid, run
from devtrace.diagnosis.edits import applied
from devtrace.diagnosis.findings import Finding, ReportData

pytestmark = pytest.mark.one_in(6)

PROGRAM = """
import torch
from torch import nn


def main(device):
    torch.manual_seed(0)
    net = nn.Linear(8, 3).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    table = torch.rand(500, 2000)
    scores = torch.rand(16, device=device)
    seen, used = [], 0.0
    for x in torch.rand(12, 16, 8, device=device):
        pred = net(x)
        loss = pred.square().mean()
        {lesser}  # lesser
        {larger}  # larger
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return [float(each) for each in seen], float(used), net.weight.tolist()
"""

# What each costs in a step, the dearest first: 4 MB, 16 waits, 262 KB, a wait and two copies, a wait, a wait, 4 bytes.
COSTS = {
    "table": "loss = loss + (pred[:1, :1] * table.to(x.device)).mean()",
    "elements": "used += sum([float(score) for score in scores])",
    "constant": "loss = loss + torch.tril(torch.ones(256, 256)).to(x.device).mean()",
    "return": "loss = loss + (pred.detach().cpu() * 2).to(x.device).mean()",
    "read": "seen.append(loss.item())",
    "pick": "loss = loss + pred[pred > 0].sum()",
    "number": "loss = loss * torch.tensor(0.5).to(x.device)",
}
ALIKE = {("read", "pick")}
PAIRS = [(a, b) for at, a in enumerate(COSTS) for b in list(COSTS)[at + 1 :] if (a, b) not in ALIKE]


class Outcome(NamedTuple):
    text: str
    value: object
    report: ReportData

    @property
    def warnings(self) -> list[Finding]:
        return [finding for finding in self.report.findings if finding.severity != "note"]

    def marks(self) -> list[str]:
        lines = self.text.splitlines()
        return [lines[each.site.line - 1].rpartition("# ")[2] for each in self.warnings if each.site is not None]


def test_there_are_twenty_of_them() -> None:
    assert len(PAIRS) == 20


@pytest.mark.parametrize(("larger", "lesser"), PAIRS)
def test_the_larger_cost_comes_first_and_each_has_its_share(tmp_path: Path, larger: str, lesser: str) -> None:
    text = PROGRAM.format(larger=COSTS[larger], lesser=COSTS[lesser])
    outcome = Outcome(text, *run(tmp_path / "program.py", text))
    assert outcome.marks() == ["larger", "lesser"]
    is_one_kind = len({finding.rule == "host-sync" for finding in outcome.warnings}) == 1
    assert all("% of the " in finding.message for finding in outcome.warnings if is_one_kind)
    assert not any("These are 100% of the waits" in finding.message for finding in outcome.warnings)
    assert max(Counter(outcome.marks()).values()) == 1
    for finding in outcome.warnings:
        assert finding.help
        if finding.edits:
            mended = applied(text, finding.edits)
            changed = Outcome(mended, *run(tmp_path / "mended.py", mended))
            assert changed.value == outcome.value
            assert paid(changed.report) < paid(outcome.report)
            assert len(changed.warnings) == 1
