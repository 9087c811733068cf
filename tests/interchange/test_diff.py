"""Two traces compared: what came, what went, what changed device, by line and name."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
import torch
from torch import nn

import devtrace
from devtrace.api.results import Trace
from devtrace.interchange.comparison import Change, Comparison
from devtrace.interchange.diff import diff
from devtrace.trace.tables import TraceData
from goldens import assert_golden
from samples import Sample, training
from traces import empty_trace, head_trace, odd_trace


def changes(compared: Comparison, what: str) -> list[tuple[str, str, str]]:
    return [(change.where, change.before, change.after) for change in compared.changes if change.what == what]


@pytest.mark.parametrize("trace", [training(), head_trace(), odd_trace(), empty_trace()])
def test_a_trace_does_not_differ_from_itself(trace: TraceData) -> None:
    compared = diff(trace, trace)
    assert compared.changes == ()
    assert compared.text.endswith(": no difference")
    assert not compared.worse


def test_a_finding_that_came_is_worse_and_one_that_went_is_not() -> None:
    clean, broken = training(failing=False), training()
    came, went = diff(clean, broken), diff(broken, clean)
    finding_text = "device-mismatch: model.out_head.weight on cpu"
    assert ("In[7] line 6  self.out_head(x)", "", finding_text) in changes(came, "finding")
    assert came.worse
    assert ("In[7] line 6  self.out_head(x)", finding_text, "") in changes(went, "finding")
    assert not went.worse


def test_lines_are_the_same_whatever_their_number_and_cell() -> None:
    def at(line: int, cell: int) -> TraceData:
        sample = Sample(f"In[{cell}]")
        site = sample.site(line, "x.to(device)", cell)
        sample.copy(sample.tensor("cpu", 4), "cuda:0", site)
        return Trace.of(sample.builder.build())

    assert diff(at(3, 7), at(9, 12)).changes == ()


def test_worked_yesterday_fails_today_is_one_table() -> None:
    def run(attach_after: bool, sync: bool) -> TraceData:
        with devtrace.record(simulate="cuda:1", name="run") as recording:
            model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
            model.to("cuda:0")
            if attach_after:
                model[1] = nn.Linear(4, 2)
            for _ in range(3):
                x = torch.randn(2, 4).to("cuda:0")
                y = x * 2
                if sync:
                    y.sum().item()
            with contextlib.suppress(RuntimeError):
                model(x)
        return recording.trace

    compared = diff(run(False, False), run(True, True))
    assert changes(compared, "device") == [("model.1 (2 tensors)", "cuda:0", "cpu")]
    assert [(before, after) for where, before, after in changes(compared, "syncs") if "y.sum().item()" in where] == [
        ("", "3")
    ]
    assert any("model.1.weight" in after for _, _, after in changes(compared, "finding"))
    assert compared.worse
    assert max(map(len, compared.text.splitlines())) <= 100


def test_an_error_without_a_finding_is_reported() -> None:
    def run(fails: bool) -> TraceData:
        sample = Sample()
        op = sample.op("aten.view", "cpu", -1 if fails else 5)
        if fails:
            sample.builder.append("errors", op=op, type="RuntimeError", message="shape is invalid\nmore")
        sample.builder.findings = ()
        return sample.builder.build()

    compared = diff(run(False), run(True))
    assert changes(compared, "error") == [("somewhere", "", "RuntimeError: shape is invalid")]
    assert compared.worse


def test_the_text_of_a_comparison() -> None:
    assert_golden("diff-training.txt", diff(training(2, failing=False), training(9)).text + "\n")


def test_files_are_compared_as_well(tmp_path: Path) -> None:
    first, second = training(2).save(tmp_path / "a.devtrace"), training(3).save(tmp_path / "b.devtrace")
    assert devtrace.diff(first, str(second)).text.startswith("a.devtrace → b.devtrace: ")


def test_names_in_a_comparison_are_text() -> None:
    hostile = Change("copies", "<script>\u202e" + "x" * 10**6, "1", "2")
    assert "\u202e" not in str(hostile)
    assert max(map(len, str(hostile).splitlines())) <= 100


def test_of_many_changes_the_first_are_shown_and_the_rest_counted() -> None:
    report = diff(empty_trace(), empty_trace()).before
    compared = Comparison(report, report, tuple(Change("syncs", f"line {n}", "1", "2") for n in range(100)))
    assert compared.text.endswith("and 60 more changes")


def test_what_a_failed_run_did_less_is_the_failures_doing() -> None:
    def run(fails: bool) -> TraceData:
        with contextlib.suppress(RuntimeError), devtrace.record(simulate="cuda:1", name="run") as recording:
            x = torch.ones(4, device="cuda:0")
            for step in range(12):
                x.sum().item()
                if fails and step == 2:
                    x + torch.ones(4)
        return recording.trace

    works, fails = run(False), run(True)
    broke, backwards = diff(works, fails), diff(fails, works)
    assert [(change.sign, change.what) for change in broke.changes] == [("+", "finding")]
    assert "  the second ends with RuntimeError at test_diff.py line " in broke.text
    assert broke.worse
    assert [change.sign for change in backwards.changes if change.what != "finding"] == []
    assert any("device-mismatch" in change.before for change in backwards.changes)
    assert "  the first ends with RuntimeError at test_diff.py line " in backwards.text
    assert not backwards.worse


def test_files_are_called_by_their_names_and_a_long_line_has_what_changed_below_it(tmp_path: Path) -> None:
    def at(text: str, times: int) -> Trace:
        sample = Sample("train.py")
        site = sample.site(3, text)
        for _ in range(times):
            sample.copy(sample.tensor("cpu", 4), "cuda:0", site)
        return Trace.of(sample.builder.build())

    text = "batch = {key: value.to(device, non_blocking=True) for key, value in batch.items()}"
    monday, today = at(text, 2).save(tmp_path / "monday.devtrace"), at(text, 4).save(tmp_path / "today.devtrace")
    lines = diff(monday, str(today)).text.splitlines()
    assert lines[0] == "monday.devtrace → today.devtrace: 1 change"
    assert lines[-2:] == [f"~ copies   In[7] line 3 {text}"[:99] + "…", "           2 → 4"]
