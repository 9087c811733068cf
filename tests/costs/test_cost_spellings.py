"""What is read in each step of a loop is told, however the line is written and however short the loop is."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

import devtrace
from devtrace.api.results import Report
from devtrace.diagnosis.findings import Finding
from devtrace.report.text import text
from loaded import module_of

pytestmark = pytest.mark.one_in(8)

PROGRAM = """
import io
import math

import torch
from torch import nn


def program(steps, every, device="cuda:0"):
    out, total, history, stored, best = io.StringIO(), 0.0, [], [0.0] * steps, 1e9
    net = nn.Linear(8, 4).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    x = torch.rand(16, 8, device=device)
    n = x.shape[0]
    for step in range(steps):
        optimizer.zero_grad()
        pred = net(x)
        loss = pred.square().mean()
        loss.backward()
        optimizer.step()
        if step % every == every - 1:
            {line}
"""
SPELLINGS = {
    "added": "total += loss.item() * n",
    "added in full": "total = total + loss.item() * n",
    "counted": "total += (pred.argmax(1) == 0).sum().item()",
    "a branch": "if loss < 1e-9: print(step)",
    "a branch that leaves": "if loss < 1e-9: break",
    "a branch that leaves on a number": "if loss.item() < 1e-9: break",
    "a branch on any": "if (pred > 1e9).any(): raise ValueError",
    "a branch on not a number": "if torch.isnan(loss): break",
    "an assertion": "assert torch.isfinite(loss)",
    "a loop's condition": "while loss > 1e9: loss = loss / 2",
    "a named expression": "if (value := loss.item()) < 0: print(value)",
    "a choice": "value = 1 if loss > 5 else 0",
    "printed": "print(step, loss.item(), file=out)",
    "printed as a tensor": "print(step, loss, file=out)",
    "many printed": "print(step, pred, file=out)",
    "a text": "out.write(str(pred))",
    "a formatted text": "out.write(f'{step} {loss:.3f}')",
    "a formatted text of many": "out.write(f'{step} {pred}')",
    "kept": "history.append(loss.item())",
    "stored": "stored[step] = loss.item()",
    "kept in a dict": "history.append({'loss': loss.item(), 'step': step})",
    "kept worked out": "history.append(math.exp(loss.item()))",
    "kept as an array": "history.append(pred.detach().cpu().numpy())",
    "kept on the CPU": "history.append(loss.detach().to('cpu'))",
    "an array": "value = loss.detach().cpu().numpy()",
    "a list": "value = pred.tolist()",
    "assigned": "value = loss.item()",
    "a float": "value = float(loss.detach())",
    "an int": "value = int((pred.argmax(1) == 0).sum())",
    "a bool": "value = bool(loss > 0)",
    "the best so far": "best = min(best, loss.item())",
    "read for nothing": "loss.item()",
}
COPIED = {"kept as an array", "kept on the CPU", "an array", "a list"}
WAITS = ("host-sync", "device-to-host-copy")

spelt = pytest.mark.parametrize("spelling", SPELLINGS)


@pytest.fixture
def program(spelling: str, tmp_path: Path) -> ModuleType:
    return module_of(tmp_path / "program.py", PROGRAM.format(line=SPELLINGS[spelling]))


def report_of(program: ModuleType, steps: int, every: int = 1) -> Report:
    with devtrace.record(simulate="cuda:1") as recording:
        program.program(steps, every)
    assert not recording.report.notes
    return recording.report


def waits_of(program: ModuleType, steps: int, every: int = 1) -> list[Finding]:
    return [finding for finding in report_of(program, steps, every).findings if finding.rule in WAITS]


@spelt
@pytest.mark.parametrize("steps", [10, 300])
def test_what_each_step_reads_is_a_warning(spelling: str, program: ModuleType, steps: int) -> None:
    (found,) = waits_of(program, steps)
    assert (found.rule, found.severity, found.count) == (WAITS[spelling in COPIED], "warning", steps)
    assert "in each step" in found.message
    assert found.help


@spelt
@pytest.mark.parametrize("steps", [3, 4])
def test_a_short_loop_gets_a_note_about_each_step(program: ModuleType, steps: int) -> None:
    (found,) = waits_of(program, steps)
    assert (found.severity, found.count) == ("note", steps)
    assert "in each step" in found.message
    assert found.help


@spelt
@pytest.mark.parametrize(("steps", "every"), [(300, 50), (120, 10)])
def test_what_every_fiftieth_or_tenth_step_reads_is_no_warning(program: ModuleType, steps: int, every: int) -> None:
    (found,) = waits_of(program, steps, every)
    assert (found.severity, found.count) == ("note", steps // every)
    assert "each step" not in found.message


@pytest.mark.parametrize(
    ("spelling", "code"),
    [
        ("added", "loss.item()"),
        ("a branch", "loss < 1e-9"),
        ("many printed", "print(step, pred, file=out)"),
        ("a formatted text of many", "f'{step} {pred}'"),
        ("kept as an array", "pred.detach()"),
        ("an int", "int((pred.argmax(1) == 0).sum())"),
    ],
)
def test_the_message_begins_with_the_code_that_waits(program: ModuleType, code: str) -> None:
    (found,) = waits_of(program, 10)
    assert f"`{code}`" in found.message


@pytest.mark.parametrize("spelling", ["printed", "kept as an array"])
def test_the_text_form_shows_the_note_of_a_short_loop_below_its_counts(program: ModuleType) -> None:
    report = report_of(program, 3)
    (found,) = (finding for finding in report.findings if finding.rule in WAITS)
    shown = " ".join(text(report).split())
    assert shown.startswith("✓ No device problems")
    assert shown.endswith(f"i {found.site}: {found.message} Fix: {found.help}.")
    assert "\ni " not in text(report_of(program, 300, every=50))


LOADED = """
import torch


def program(steps, every, device="cuda:0"):
    w = torch.rand(8, 8, device=device)
    for step in range(steps):
        x = torch.rand(16, 8).to(device)
        w = w + (x @ w).mean()
        if step % every == every - 1:
            w = w * torch.rand(8).to(device)
"""


@pytest.mark.parametrize("steps", [3, 4, 300])
def test_the_note_on_copies_of_batches_names_their_pace(steps: int, tmp_path: Path) -> None:
    report = report_of(module_of(tmp_path / "program.py", LOADED), steps, every=2)
    copies = [finding for finding in report.findings if finding.rule == "host-to-device-copy"]
    assert [(each.severity, each.count) for each in copies] == [("note", steps), ("note", steps // 2)]
    paces = [each.message.partition(" in total)")[2] for each in copies]
    assert paces == [", once in each step.", "."]
