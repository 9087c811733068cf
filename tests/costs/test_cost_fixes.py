"""A fix of a cost gives the very same values, and the smaller count."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cost_proofs import paid, run
from devtrace.diagnosis.edits import applied
from devtrace.diagnosis.findings import Finding, ReportData
from shells import Shell, new_shell

PROGRAM = """
import torch
from torch import nn
from torch.nn import functional as F


def main(device):
    torch.manual_seed(0)
    net = nn.Linear(8, 3).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    weights = torch.tensor([1.0, 2.0, 3.0])
    xs, ys = torch.rand(12, 16, 8, device=device), torch.randint(0, 3, (12, 16), device=device)
    {start}
    for x, y in zip(xs, ys):
        n = x.shape[0]
        optimizer.zero_grad()
        pred = net(x)
        loss = F.cross_entropy(pred, y)
        loss.backward()
        optimizer.step()
        {line}
    return {result}
"""


def worst(report: ReportData) -> Finding:
    (found,) = [finding for finding in report.findings if finding.severity == "warning"]
    return found


FIXES = {
    "a kept number": (
        "history = []",
        "history.append(loss.item())",
        "history",
        ["history.append(loss.detach())", "history = torch.stack(history).tolist()"],
    ),
    "a kept number of several variables": (
        "history, seen = [], 0",
        "history.append(float(loss.detach()))",
        "history",
        ["history.append(loss.detach())", "history = torch.stack(history).tolist()"],
    ),
    "a kept number of an expression": (
        "history = list()",
        "history.append((pred - 1).abs().max().item())",
        "history",
        ["history.append((pred - 1).abs().max().detach())", "history = torch.stack(history).tolist()"],
    ),
    "a kept number whose memory is written to": (
        "history, count = [], torch.zeros((), device=device)",
        "count += 1; history.append(count.item())",
        "history",
        ["count += 1; history.append(count.detach().clone())", "history = torch.stack(history).tolist()"],
    ),
    "a kept count": (
        "history = []",
        "history.append((pred.argmax(1) == y).sum().item())",
        "history",
        ["history.append((pred.argmax(1) == y).sum().detach())", "history = torch.stack(history).tolist()"],
    ),
    "a sum": (
        "total = 0.0",
        "total += loss.item()",
        "total / 12",
        ["total += loss.detach().double()", "total = float(total)"],
    ),
    "a sum in full of products": (
        "total = 0",
        "total = total + loss.item() * n / 3",
        "total",
        ["total = total + loss.detach().double() * n / 3", "total = float(total)"],
    ),
    "a sum of counts": (
        "right = 0",
        "right += (pred.argmax(1) == y).sum().item()",
        "right / 192",
        ["right += (pred.argmax(1) == y).sum().detach()", "right = int(right)"],
    ),
    "a tensor moved in each step": (
        "total = torch.zeros((), device=device)",
        "total += F.cross_entropy(pred.detach(), y, weight=weights.to('cuda:0'))",
        "total",
        ["weights = weights.to('cuda:0')"],
    ),
}


@pytest.mark.parametrize("name", FIXES)
def test_the_edits_give_the_same_values_for_fewer_waits_and_copies(name: str, tmp_path: Path) -> None:
    start, line, result, written = FIXES[name]
    text = PROGRAM.format(start=start, line=line, result=result)
    value, before = run(tmp_path / "program.py", text)
    found = worst(before)
    assert [each.strip() for edit in found.edits for each in edit.after.split("\n")] == written
    fixed, after = run(tmp_path / "program.py", applied(text, found.edits))
    assert fixed == value
    assert paid(before) - paid(after) in (11, 12)
    assert [each for each in after.findings if each.severity == "warning"] == []


@pytest.mark.parametrize(
    ("start", "line", "result"),
    [
        pytest.param(
            "history = []", "history.append(loss.item()); len(history)", "history", id="looked at in the loop"
        ),
        pytest.param("history = [1.0]", "history.append(loss.item())", "history", id="not empty above the loop"),
        pytest.param("history = []; other = history", "history.append(loss.item())", "other", id="known by two names"),
        pytest.param("history = []", "history.append(loss.item() * 3)", "history", id="computed by Python"),
        pytest.param("history = []", "history.append(pred.max().reshape(1).item())", "history", id="of a dimension"),
        pytest.param("total = 0.0", "total += loss.item(); total > 3", "total", id="a sum that is looked at"),
        pytest.param("right = 0.0", "right += (pred > 0).sum().item()", "right", id="a count in a float"),
        pytest.param("class A: total = 0.0", "A.total += loss.item()", "A.total", id="an attribute"),
    ],
)
def test_what_might_change_a_value_is_advice_without_an_edit(
    start: str, line: str, result: str, tmp_path: Path
) -> None:
    _, report = run(tmp_path / "program.py", PROGRAM.format(start=start, line=line, result=result))
    found = worst(report)
    assert found.edits == ()
    assert found.help


EPOCHS = """
import torch
from torch import nn


def main(device):
    torch.manual_seed(0)
    net, seen = nn.Linear(4, 1).to(device), []
    {above}
    for epoch in range(3):
        {within}
        for x in torch.rand(12, 4, 4, device=device):
            history.append(net(x).mean().item())
        seen.append(sum(history[-4:]))
    return seen
"""


def test_a_list_that_several_epochs_fill_is_read_in_none_of_them(tmp_path: Path) -> None:
    _, report = run(tmp_path / "program.py", EPOCHS.format(above="history = []", within="pass"))
    assert worst(report).edits == ()
    text = EPOCHS.format(above="", within="history = []")
    value, before = run(tmp_path / "program.py", text)
    assert len(worst(before).edits) == 2
    assert run(tmp_path / "program.py", applied(text, worst(before).edits))[0] == value


ATTRIBUTE = """
import torch
from torch import nn


class Masks:
    def __init__(self):
        self.full = torch.ones(4, 4).tril()

    def of(self, x):
        {use}


def main(device):
    torch.manual_seed(0)
    net, masks = nn.Linear(4, 4).to(device), Masks()
    return torch.stack([masks.of(net(x)).sum().detach() for x in torch.rand(12, 4, 4, device=device)])
"""


def test_an_attribute_that_each_call_moves_is_kept_where_it_was_moved(tmp_path: Path) -> None:
    text = ATTRIBUTE.format(use="return x * self.full.to(x.device)")
    value, before = run(tmp_path / "program.py", text)
    (edit,) = worst(before).edits
    assert edit.after.strip() == "self.full = self.full.to(x.device)"
    assert "register" not in worst(before).help
    fixed, after = run(tmp_path / "program.py", applied(text, [edit]))
    assert fixed == value
    assert paid(before) - paid(after) == 11
    assert [each for each in after.findings if each.severity == "warning"] == []


def test_an_attribute_that_is_also_used_where_it_is_gets_no_edit(tmp_path: Path) -> None:
    text = ATTRIBUTE.format(use="return x * self.full.to(x.device) if self.full.numpy().any() else x")
    _, report = run(tmp_path / "program.py", text)
    assert worst(report).edits == ()
    assert "self.full" in worst(report).help


TABLES = """
import torch
from torch import nn


class Tables(nn.Module):
    def __init__(self):
        super().__init__()
        self.rows = [{{(0, "low"): torch.rand(4), (0, "high"): torch.rand(4)}} for _ in range(2)]

    def forward(self, x):
        {use}


def main(device):
    torch.manual_seed(0)
    net, tables = nn.Linear(4, 4).to(device), Tables().to(device)
    return torch.stack([tables(net(x)).sum().detach() for x in torch.rand(12, 4, 4, device=device)])
"""


@pytest.mark.parametrize(
    ("use", "name"),
    [
        ('return x * self.rows[1][0, "low"].to(x.device)', 'self.rows[1][0, "low"]'),
        ('at = 1\n        return x + self.rows[at][0, "high"][:1].to(x.device)', 'self.rows[at][0, "high"]'),
    ],
)
def test_an_item_of_a_list_of_dictionaries_is_the_tensor_and_not_the_list(use: str, name: str, tmp_path: Path) -> None:
    _, report = run(tmp_path / "program.py", TABLES.format(use=use))
    assert f"`{name}` is the same tensor each time" in worst(report).message
    assert worst(report).edits == ()
    assert "register_buffer" not in worst(report).help


NESTED = """
import torch
from torch import nn


def main(device):
    torch.manual_seed(0)
    net, kept = nn.Linear(8, 3).to(device), []
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    xs = torch.rand(6, 16, 8, device=device)
    for epoch in range(4):
        total = 0.0
        for x in xs:
            optimizer.zero_grad()
            loss = net(x).square().mean()
            loss.backward()
            optimizer.step()
            total += loss.item()
        kept.append(total / len(xs))
    return kept
"""


def test_a_sum_of_an_epoch_is_read_at_the_end_of_the_epoch(tmp_path: Path) -> None:
    value, before = run(tmp_path / "program.py", NESTED)
    text = applied(NESTED, worst(before).edits)
    assert "            total += loss.detach().double()\n        total = float(total)\n        kept.append" in text
    fixed, after = run(tmp_path / "program.py", text)
    assert fixed == value
    assert [row.syncs for row in after.ledger if row.syncs] == [4]
    assert [each for each in after.findings if each.severity == "warning"] == []


@pytest.fixture
def shell() -> Iterator[Shell]:
    with new_shell("%load_ext devtrace", "%devtrace simulate cuda:1") as shell:
        yield shell
        shell.run("%devtrace simulate off")


SETUP = [
    "import torch",
    "from torch.nn import functional as F",
    "net = torch.nn.Linear(8, 3).to('cuda:0')",
    "class_weights = torch.tensor([1.0, 2.0, 3.0])",
    "xs, ys = torch.rand(12, 16, 8, device='cuda:0'), torch.randint(0, 3, (12, 16), device='cuda:0')",
]
LOOP = [
    "%%devtrace loop",
    "losses = []",
    "for x, y in zip(xs, ys):",
    "    pred = net(x)",
    '    losses.append(F.cross_entropy(pred, y, weight=class_weights.to("cuda:0")).detach())',
]


def warned_in(shell: Shell) -> list[Finding]:
    return [finding for finding in shell.traced[-1].report.findings if finding.severity == "warning"]


def test_a_tensor_of_an_earlier_cell_is_moved_above_the_loop_of_this_one(shell: Shell) -> None:
    shell.run(*SETUP)
    shell.run(*LOOP)
    (found,) = warned_in(shell)
    (edit,) = found.edits
    assert (edit.line, edit.after) == (2, 'class_weights = class_weights.to("cuda:0")')
    shell.run(*LOOP[: edit.line], edit.after, *LOOP[edit.line :])
    assert warned_in(shell) == []
