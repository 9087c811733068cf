"""What a loop keeps is found long before memory ends, and what has a bound is not; who held memory at its highest."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch

import devtrace
from devtrace.api.results import Report
from devtrace.diagnosis.edits import applied
from devtrace.diagnosis.findings import Finding
from devtrace.memory import observer
from loaded import function_of, programs_in

pytestmark = pytest.mark.one_in(5)

PROGRAMS = programs_in(Path(__file__).parent / "growing_programs")


class Expected(NamedTuple):
    name: str
    kind: str
    site: str
    edit: str


GROWING = {
    "losses_of_a_validation": Expected("total", "graph", "total += (model", r"mean\(\)\.detach\(\)"),
    "terms_in_a_dictionary": Expected("notes.values", "graph", "self.values[name].append(value)", ""),
    "errors_of_attempts": Expected("outcome", "traceback", "outcome[number] = problem", r"= str\(problem\)"),
    "features_of_a_gallery": Expected("BANK", "named", "BANK.append(features)", r"features\.cpu\(\)"),
    "states_by_deepcopy": Expected("history", "named", "history.append(copy.deepcopy(", "copy=True"),
    "states_by_name": Expected("SNAPSHOTS", "named", "SNAPSHOTS[epoch] = {key", r"value\.clone\(\)\.cpu\(\) for"),
    "gradients_of_steps": Expected("noise.steps", "named", "self.steps.append([p.grad", r"p\.grad\.clone\(\)\.cpu"),
    "losses_of_few_batches": Expected("total", "graph", "total = total + (model", r"mean\(\)\.detach\(\)"),
    "deep_copies_of_a_trainer": Expected(
        "trainer.log",
        "named",
        'self.log["state"].append(',
        r"value\.to\(.cpu., copy=True\) for key, value in self\.net\.",
    ),
    "losses_in_the_memory_of_all": Expected(
        "losses", "named", "losses.append(nn.f", r"mse_loss\(net\(x\), x\)\.clone\(\)"
    ),
    "copies_of_better_models": Expected("best", "parameter", "best.append(", r"copy\.deepcopy\(model\)\.cpu\(\)"),
    "copies_of_a_fit": Expected("fit.snapshots", "parameter", "self.snapshots[number] = deepcopy", ""),
    "terms_beside_a_backward": Expected("curve", "graph", 'curve["smooth"].append(smooth', r"smooth\.detach\(\)"),
    "codes_of_epochs": Expected("codes", "graph", 'codes["mu"].append', r"torch\.cat\(batches\)\.detach\(\)"),
    "scores_of_two_passes": Expected("trainer.shown", "graph", "trainer.shown.append(scores)", ""),
    "gradients_until_their_spread": Expected("seen", "named", "seen[step] = flat(net)", r"flat\(net\)\.cpu\(\)"),
}
HEALTHY = [name for name in PROGRAMS if name.startswith("healthy_")]


@pytest.fixture(autouse=True)
def without_limit_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every height be looked at: a process with many tests behind it is slow to walk."""
    monkeypatch.setattr(observer, "_FIRST", 600.0)
    monkeypatch.setattr(observer, "_CLOSE_FIRST", 600.0)


def ran(name: str, file: Path | None = None, **options: Any) -> Report:
    with devtrace.record(simulate="cuda:1", **options) as recording:
        function_of(file or PROGRAMS[name], name)("cuda:0")
    return recording.report


def growing(report: Report) -> list[Finding]:
    return [finding for finding in report.findings if finding.rule == "memory-growth"]


@pytest.mark.parametrize("name", GROWING)
def test_what_grows_with_each_step_is_a_warning_with_its_name_and_edit(name: str, tmp_path: Path) -> None:
    expected, report = GROWING[name], ran(name)
    (found,) = growing(report)
    (holder,) = found.holders
    assert (found.severity, holder.name, holder.kind) == ("warning", expected.name, expected.kind)
    assert found.site is not None
    assert expected.site in found.site.text
    assert found.count >= 4
    assert not report.all_clear
    assert f"`{expected.name}` grows with each step" in str(report)
    assert found.edits or not expected.edit
    if expected.edit:
        assert re.search(expected.edit, found.edits[0].after)
        edited = tmp_path / "program.py"
        edited.write_text(applied(PROGRAMS[name].read_text(), found.edits))
        assert growing(ran(name, edited)) == []


def test_a_graph_that_its_backward_pass_left_gets_no_advice_to_compute_without_one(tmp_path: Path) -> None:
    name = "scores_of_two_passes"
    (found,) = growing(ran(name))
    assert "`retain_graph=True` kept them after their backward pass" in found.message
    assert found.help == "keep `.detach()` of what goes into `trainer.shown`"
    edited, text = tmp_path / "program.py", PROGRAMS[name].read_text()
    edited.write_text(text.replace("append(scores)", "append(Scores(*(each.detach() for each in scores)))"))
    assert growing(ran(name, edited)) == []


def test_a_state_of_several_parts_is_one_round() -> None:
    (found,) = growing(ran("gradients_of_steps"))
    assert found.count <= 20 < found.holders[0].count


@pytest.mark.parametrize("name", HEALTHY)
def test_what_has_a_bound_or_is_wanted_is_silent(name: str) -> None:
    assert growing(ran(name)) == []


def test_the_holders_of_memory_at_its_highest_are_reported_where_it_is_asked_for() -> None:
    name = "losses_of_a_validation"
    with devtrace.record(simulate="cuda:1", memory=True) as recording:
        function_of(PROGRAMS[name], name)("cuda:0")
        highest = torch.cuda.max_memory_allocated()
    report = recording.report
    (found,) = [each for each in report.findings if each.rule == "memory-peak"]
    assert (found.holders[0].name, found.holders[0].kind) == ("total", "graph")
    assert ("model", "parameter") in {(each.name, each.kind) for each in found.holders}
    assert found.bytes > 0.97 * highest
    assert re.search(
        r"cuda:0 held at most \d+\.\d MiB\. The largest parts: \d+\.\d MiB is graphs", " ".join(str(report).split())
    )
    assert "memory-peak" not in {each.rule for each in ran(name).findings}


@pytest.mark.parametrize("name", ["losses_of_few_batches", "features_of_a_gallery"])
def test_what_grows_is_found_as_well_where_heights_are_asked_for(name: str) -> None:
    (found,) = growing(ran(name, memory=True))
    assert found.holders[0].name == GROWING[name].name


def test_a_healthy_program_that_is_asked_for_its_peak_stays_clear() -> None:
    assert ran("healthy_predictions", memory=True).all_clear


def test_looking_at_heights_keeps_no_tensor_alive() -> None:
    import gc
    import weakref

    alive: list[weakref.ref[torch.Tensor]] = []

    def work() -> None:
        kept = []
        for _ in range(20):
            kept.append(torch.randn(512, 512, device="cuda"))
            alive.append(weakref.ref(kept[-1]))

    gc.disable()
    try:
        with devtrace.record(simulate="cuda:1", memory=True):
            work()
            assert [each for each in alive if each() is not None] == []
    finally:
        gc.enable()
