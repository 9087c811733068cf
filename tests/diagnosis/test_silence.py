"""What the program asks to be silent about is counted and not shown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

import devtrace
from devtrace.api.results import Report
from devtrace.contract import findings_json
from devtrace.diagnosis import silence

GPU = "cuda:0"
NOTE = "1 finding is not shown, as asked by "


def report_of(each_step: Callable[[torch.Tensor], object]) -> Report:
    with devtrace.record(simulate="cuda:1") as recording:
        net = nn.Linear(8, 4).to(GPU)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(20):
            optimizer.zero_grad()
            loss = net(torch.rand(16, 8, device=GPU)).square().mean()
            loss.backward()
            optimizer.step()
            each_step(loss)
    return recording.report


def named(loss: torch.Tensor) -> float:
    return loss.item() * 2  # devtrace: ignore[host-sync]


def among_others(loss: torch.Tensor) -> float:
    return loss.item() * 2  # devtrace: ignore[cpu-compute, host-sync] read on purpose


def every_rule(loss: torch.Tensor) -> float:
    return loss.item() * 2  # devtrace: ignore


def on_the_statement(loss: torch.Tensor) -> list[float]:
    return [
        loss.item(),
        2.0,
    ]  # devtrace: ignore[host-sync]


def another_rule(loss: torch.Tensor) -> float:
    return loss.item() * 2  # devtrace: ignore[cpu-compute]


@pytest.mark.parametrize("read", [named, among_others, every_rule, on_the_statement])
def test_a_comment_silences_the_finding_of_its_statement(read: Callable[[torch.Tensor], object]) -> None:
    report = report_of(read)
    assert [each.rule for each in report.findings if each.severity == "warning"] == []
    assert report.notes == (NOTE + "`# devtrace: ignore`",)


def test_a_comment_for_another_rule_silences_nothing() -> None:
    report = report_of(another_rule)
    assert [each.rule for each in report.findings if each.severity == "warning"] == ["host-sync"]
    assert report.notes == ()


def test_an_error_is_never_silent() -> None:
    with pytest.raises(RuntimeError), devtrace.record(simulate="cuda:1") as recording:
        torch.ones(2, device=GPU) + torch.ones(2)  # devtrace: ignore
    assert [each.severity for each in recording.report.findings] == ["error"]


def of_the_step(loss: torch.Tensor) -> float:
    return loss.item() * 2


def shown(report: Report) -> list[str]:
    return [each.rule for each in report.findings if each.severity == "warning"]


def test_a_rule_is_silent_for_a_session_until_it_is_off() -> None:
    silence.by_session.add("host-sync")
    try:
        report = report_of(of_the_step)
    finally:
        silence.by_session.clear()
    assert (shown(report), report.notes) == ([], (NOTE + "`%devtrace ignore`",))
    assert shown(report_of(of_the_step)) == ["host-sync"]


def test_a_project_silences_a_rule_in_its_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.devtrace]\nignore = ["host-sync"]\n')
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    report = report_of(of_the_step)
    assert (shown(report), report.notes) == ([], (NOTE + "`pyproject.toml`",))


def test_what_a_baseline_knows_is_silent_and_what_is_new_is_not(folder: Path) -> None:
    findings_json.write(findings_json.findings_json(report_of(of_the_step)), folder / "known.json")
    (folder / "pyproject.toml").write_text('[tool.devtrace]\nbaseline = "known.json"\n')
    report = report_of(of_the_step)
    assert (shown(report), report.notes) == ([], (NOTE + "the baseline",))
    assert shown(report_of(lambda loss: loss.item() * 3)) == ["host-sync"]


@pytest.mark.parametrize("settings", ['baseline = "missing.json"', "ignore = 3", "devtrace = 3\n["])
def test_settings_that_cannot_be_read_are_a_note(settings: str, folder: Path) -> None:
    (folder / "pyproject.toml").write_text(f"[tool.devtrace]\n{settings}\n")
    report = report_of(of_the_step)
    assert shown(report) == ["host-sync"]
    assert [note.startswith("pyproject.toml was not read") for note in report.notes] == [True]
