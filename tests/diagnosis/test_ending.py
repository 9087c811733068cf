"""A tick stands only where the program ended well, on a device, with nothing of a model elsewhere."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import devtrace
from devtrace.api.results import Report

GPU = "cuda:0"
TICK = "✓ No device problems: "


def report_of(program: Callable[[], object]) -> Report:
    recording = devtrace.record(simulate="cuda:1")
    with suppress(BaseException), recording:
        program()
    assert (TICK in recording.report.text) == recording.report.all_clear
    return recording.report


def train(net: nn.Module, steps: int = 2) -> None:
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        net(torch.rand(4, 8).to(GPU)).square().mean().backward()
        optimizer.step()


def test_training_on_a_device_is_all_clear() -> None:
    report = report_of(lambda: train(nn.Linear(8, 2).to(GPU)))
    assert (report.outcome, report.all_clear) == ("ended", True)


def test_what_touched_no_device_has_no_tick() -> None:
    report = report_of(lambda: torch.ones(2) + 1)
    assert (report.outcome, report.all_clear, report.text) == ("ended", False, "2 ops on cpu.")


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (KeyboardInterrupt(), "interrupted"),
        (SystemExit(0), "ended"),
        (SystemExit(3), "failed: SystemExit: 3"),
        (ValueError("two\nlines"), "failed: ValueError: two lines"),
    ],
)
def test_the_outcome_is_how_it_ended(error: BaseException, outcome: str) -> None:
    def program() -> None:
        torch.ones(2, device=GPU)
        raise error

    assert report_of(program).outcome == outcome


def test_an_error_of_the_programs_own_is_one_neutral_line() -> None:
    def program() -> None:
        torch.ones(2, device=GPU).add(1)
        [][1]

    lines = report_of(program).text.splitlines()
    assert lines[0].startswith("IndexError in test_ending.py line ")
    assert lines[0].endswith("; no device had a part in it.")
    assert lines[1:] == ["2 ops on cuda:0."]


def test_an_error_about_devices_that_the_program_raises_is_named_as_one() -> None:
    def mixed() -> None:
        torch.ones(2, device=GPU)
        raise RuntimeError("aten.add.Tensor: got mixed torch.Tensor and DTensor, need to convert all of them")

    def expected() -> None:
        batch = {"image": torch.ones(2, device=GPU), "mask": torch.ones(2)}
        devtrace.expect(batch, device=GPU)

    for program, words in ((mixed, "got mixed torch.Tensor and DTensor"), (expected, "all of batch")):
        text = " ".join(report_of(program).text.split())
        assert " is about devices: " in text
        assert words in text
        assert "a device had a part" not in text


@pytest.mark.parametrize(
    ("words", "traced", "untraced"),
    [
        (
            "CUDA error: an illegal memory access was encountered",
            "whether a device had a part in it is not known.",
            "whether a device had a part in this error is not known",
        ),
        (
            "CUDA error: device-side assert triggered",
            "`CUDA_LAUNCH_BLOCKING=1`, shows which.",
            "`CUDA_LAUNCH_BLOCKING=1`, shows which",
        ),
        ("no such layer", "no device had a part in it.", "this error is not about devices"),
    ],
)
def test_of_an_error_in_the_devices_own_words_the_part_is_not_known(words: str, traced: str, untraced: str) -> None:
    def program() -> None:
        torch.ones(2, device=GPU)
        raise RuntimeError(words)

    assert traced in " ".join(report_of(program).text.split())
    assert untraced in " ".join(str(devtrace.explain(RuntimeError(words))).split())


class MadeOnTheDevice(Dataset[torch.Tensor]):
    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.ones(2, device=GPU)


def test_of_an_error_that_a_worker_sends_as_text_its_own_words_are_shown() -> None:
    def program() -> None:
        torch.ones(2, device=GPU)
        next(iter(DataLoader(MadeOnTheDevice(), num_workers=1)))

    text = " ".join(report_of(program).text.split())
    assert " is about devices: RuntimeError: Cannot re-initialize CUDA in forked subprocess." in text


def test_the_trace_keeps_how_it_ended(tmp_path: Path) -> None:
    path = tmp_path / "a.devtrace"
    report = report_of(lambda: torch.ones(2, device=GPU).add(1))
    report.trace.save(path)
    again = devtrace.diagnose(devtrace.load(path))
    assert (again.outcome, again.all_clear, again.text) == (report.outcome, True, report.text)


class Listed(nn.Module):
    """Layers in a plain list, which `.to()` passes over."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = [nn.Linear(8, 8) for _ in range(2)]
        self.out = nn.Linear(8, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.cpu()
        for layer in self.layers:
            x = layer(x).relu()
        out: torch.Tensor = self.out(x.to(self.out.weight.device))
        return out


class Kept(nn.Module):
    """A layer held in a dictionary, called behind one on the device."""

    def __init__(self) -> None:
        super().__init__()
        self.heads = {"main": nn.Linear(4, 2)}
        self.body = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.heads["main"](self.body(x).cpu())
        return out


class Halves(nn.Module):
    """Two registered halves, one of which was left."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(8, 4).to(GPU)
        self.head = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.head(self.body(x).cpu())
        return out


@pytest.mark.parametrize("kind", [Listed, Kept])
@pytest.mark.parametrize("steps", [1, 7])
def test_layers_that_no_move_reached_are_named(kind: type[nn.Module], steps: int) -> None:
    report = report_of(lambda: train(kind().to(GPU), steps))
    left = [each for each in report.findings if each.severity == "warning" and each.rule == "cpu-compute"]
    assert len(left) == 1
    assert "that it has not registered" in left[0].message
    assert "nn.ModuleList" in left[0].help


def test_a_registered_layer_that_was_left_is_named_without_a_step() -> None:
    report = report_of(lambda: Halves()(torch.rand(4, 8, device=GPU)))
    (left,) = (each for each in report.findings if each.severity == "warning")
    assert left.message.endswith("computes on the CPU, while the layers around it compute on cuda:0.")
    assert left.site is not None
    assert left.site.text == "self.head(self.body(x).cpu())"


def test_a_model_of_its_own_whose_results_are_moved_is_no_warning_and_no_tick() -> None:
    encoder, head = nn.Linear(8, 4), nn.Linear(4, 2)

    def program() -> None:
        head.to(GPU)
        head(encoder(torch.rand(4, 8)).to(GPU)).sum().backward()

    report = report_of(program)
    assert all(each.severity == "note" for each in report.findings)
    assert not report.all_clear


def test_a_try_on_the_cpu_before_the_move_is_none_of_it() -> None:
    def program() -> None:
        net = nn.Linear(8, 2)
        net(torch.rand(1, 8))
        train(net.to(GPU))

    assert report_of(program).all_clear


def test_a_model_that_is_evaluated_on_the_cpu_after_training_is_none_of_it() -> None:
    def program() -> None:
        net = nn.Sequential(nn.Linear(8, 4), nn.Linear(4, 2)).to(GPU)
        train(net)
        net.cpu()(torch.rand(1, 8))

    assert report_of(program).all_clear


def test_a_model_of_its_own_on_the_cpu_is_no_warning_and_no_tick() -> None:
    def program() -> None:
        net = nn.Linear(8, 2).to(GPU)
        train(net)
        actor = copy.deepcopy(net).cpu()
        with torch.no_grad():
            actor(torch.rand(1, 8))

    report = report_of(program)
    assert all(each.severity == "note" for each in report.findings)
    assert not report.all_clear


def test_what_goes_by_the_cpu_from_a_device_to_a_device_is_not_all_clear() -> None:
    def by_the_cpu() -> None:
        scores = nn.Linear(8, 2).to(GPU)(torch.rand(4, 8).to(GPU)).softmax(-1).cpu()
        nn.Linear(2, 2).to(GPU)(scores[:2].to(GPU))

    def best_weights_are_kept() -> None:
        net = nn.Linear(8, 2).to(GPU)
        train(net)
        best = {name: each.detach().cpu() for name, each in net.state_dict().items()}
        train(net)
        net.load_state_dict(best)

    def results_are_read() -> None:
        net = nn.Linear(8, 2).to(GPU)
        shown = [net(torch.rand(4, 8).to(GPU)).detach().cpu() for _ in range(3)]
        print(torch.cat(shown).mean().item())

    assert not report_of(by_the_cpu).all_clear
    assert report_of(best_weights_are_kept).all_clear
    assert report_of(results_are_read).all_clear


def test_a_model_that_is_split_over_two_devices_is_all_clear() -> None:
    class Split(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(8, 8).to("cuda:0"), nn.Linear(8, 2).to("cuda:1")

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            out: torch.Tensor = self.second(self.first(x).to("cuda:1"))
            return out

    with devtrace.record(simulate="cuda:2") as recording:
        train(Split())
    assert recording.report.all_clear


class Table(nn.Module):
    """A plain attribute that each forward copies."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)
        self.table = torch.ones(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.layer(x) * self.table.to(x.device)
        return out


class TakesABatch(Table):
    """A forward that brings its batch to the model."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.layer(x.to(self.layer.weight.device))
        return out


@pytest.mark.parametrize(("kind", "is_clear"), [(Table, False), (TakesABatch, True)])
def test_what_a_model_copies_in_each_step_is_not_all_clear(kind: type[nn.Module], is_clear: bool) -> None:
    def program() -> None:
        net = kind().to(GPU)
        for _ in range(2):
            net(torch.rand(4, 8) if is_clear else torch.rand(4, 8, device=GPU))

    assert report_of(program).all_clear is is_clear
