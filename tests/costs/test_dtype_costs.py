"""A cast for nothing in each step and float64 that came with an array are notes, however they are written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

import devtrace
from devtrace.diagnosis.findings import Finding
from programs import run
from warm import Warm

STEPS = 6
HEALTHY = sorted((Path(__file__).parents[1] / "dtypes" / "programs" / "healthy").glob("*.py"))


def costs(program: Callable[[], object], simulate: str | None = None) -> list[Finding]:
    with devtrace.record(simulate=simulate) as recording:
        program()
    assert not recording.report.notes
    assert {each.severity for each in recording.report.findings} <= {"note"}
    return [each for each in recording.report.findings if each.rule == "dtype-cost"]


def only(program: Callable[[], object], simulate: str | None = None) -> Finding:
    (found,) = costs(program, simulate)
    assert found.culprit is not None
    assert found.help
    return found


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(8, 8)
        self.register_buffer("gain", torch.rand(8))
        self.curve = torch.from_numpy(np.linspace(0, 1, 8))


class ByItsGain(Scaled):
    def forward(self, x: torch.Tensor) -> Any:
        return self.net(x) * self.gain.to(x.dtype)


class ByItsCurve(Scaled):
    def forward(self, x: torch.Tensor) -> Any:
        return self.net(x) + self.curve


# There and back.


def test_a_cast_to_a_larger_dtype_and_back_is_a_note_with_both_lines() -> None:
    def program() -> None:
        net = nn.Linear(8, 8).bfloat16()
        for _ in range(STEPS):
            h = net(torch.ones(2, 8, dtype=torch.bfloat16))
            h = h.float().reshape(4, 4)
            h = h.to(torch.bfloat16)
            net(h.view(2, 8)).sum()

    found = only(program)
    assert found.count == STEPS
    assert found.site is not None
    assert "h.to(torch.bfloat16)" in found.site.text
    assert found.message.startswith("`h` is cast from bfloat16 to float32 (")
    assert [(edit.before.strip(), edit.after.strip()) for edit in found.edits] == [
        ("h = h.to(torch.bfloat16)", ""),
        ("h = h.float().reshape(4, 4)", "h = h.reshape(4, 4)"),
    ]


def test_both_casts_of_one_line_are_left_out_by_one_edit() -> None:
    def program() -> None:
        net, x = nn.Linear(8, 8).half(), torch.ones(2, 8).half()
        for _ in range(STEPS):
            y = (net(x) + 1).to(torch.float32).view(4, 4).type(torch.float16)
            net(y.view(2, 8))

    (edit,) = only(program).edits
    assert edit.after.strip() == "y = (net(x) + 1).view(4, 4)"


def test_a_cast_that_something_else_needs_or_a_tensor_that_is_written_to_later_stays() -> None:
    net, x = nn.Linear(8, 8).half(), torch.ones(2, 8).half()

    def logged() -> None:
        for _ in range(STEPS):
            h = net(x).float()
            h.mean()
            net(h.half())

    def written() -> None:
        for _ in range(STEPS):
            y = net(x)
            y.float().half().zero_()
            net(y)

    assert [only(each).edits for each in (logged, written)] == [(), ()]


def test_a_cast_back_is_found_by_any_of_its_names_and_on_a_device() -> None:
    def program() -> None:
        net = nn.Linear(8, 8).to("cuda:0")
        for _ in range(STEPS):
            doubled = net(torch.ones(2, 8, device="cuda:0")).double()
            net(doubled.T.contiguous().T.type(torch.float32))

    assert costs(program, "cuda:1") == []  # contiguous computes: it is not known for a view
    assert only(lambda: doubled_and_back("cuda:0"), "cuda:1").count == STEPS


def doubled_and_back(device: str) -> None:
    net = nn.Linear(8, 8).to(device)
    for _ in range(STEPS):
        doubled = net(torch.ones(2, 8, device=device)).double()
        net(doubled[None].type(torch.float32)[0])


def test_a_model_that_each_step_casts_to_and_fro_is_named_by_its_parameter() -> None:
    def program() -> None:
        net = nn.Linear(8, 8).half()
        for _ in range(STEPS):
            net.float()
            net(torch.ones(2, 8))
            net.half()

    found = only(program)
    assert found.culprit is not None
    assert found.culprit.name == "net.weight"
    assert (found.culprit.dtype, found.count) == ("float16", 2 * STEPS)


def test_what_is_computed_or_written_in_the_larger_dtype_is_no_cost() -> None:
    net = nn.Linear(8, 8).bfloat16()

    def normalised() -> None:
        for _ in range(STEPS):
            h = net(torch.ones(2, 8, dtype=torch.bfloat16)).float()
            (h * torch.rsqrt(h.square().mean(-1, keepdim=True))).to(torch.bfloat16)

    def written() -> None:
        for _ in range(STEPS):
            h = net(torch.ones(2, 8, dtype=torch.bfloat16)).float()
            h.mul_(0.5)
            h.to(torch.bfloat16)

    assert costs(normalised) == []
    assert costs(written) == []


def test_a_cast_to_a_smaller_dtype_and_back_rounds_and_is_meant() -> None:
    def program() -> None:
        net = nn.Linear(8, 8)
        for _ in range(STEPS):
            net(torch.ones(2, 8)).to(torch.bfloat16).float()

    assert costs(program) == []


# The same again.


def test_a_tensor_that_each_step_casts_anew_is_a_note_with_an_edit() -> None:
    def program() -> None:
        net, scale = nn.Linear(8, 8).bfloat16(), torch.rand(8)
        for _ in range(STEPS):
            net(torch.ones(2, 8, dtype=torch.bfloat16)) * scale.to(torch.bfloat16)

    found = only(program)
    assert [edit.after.strip() for edit in found.edits] == ["scale = scale.to(torch.bfloat16)"]


def test_a_buffer_that_each_call_casts_anew_is_named_as_its_module_has_it() -> None:
    def program() -> None:
        net = ByItsGain()
        net.net.bfloat16()
        for _ in range(STEPS):
            net(torch.ones(2, 8, dtype=torch.bfloat16))

    found = only(program)
    assert found.culprit is not None
    assert found.culprit.name == "net.gain"


def test_another_tensor_each_time_or_one_that_is_trained_is_no_cost() -> None:
    def batches() -> None:
        net = nn.Linear(8, 8).bfloat16()
        for _ in range(STEPS):
            net(torch.rand(2, 8).bfloat16())

    def trained() -> None:
        net, extra = nn.Linear(8, 8).bfloat16(), nn.Parameter(torch.ones(8))
        optimizer = torch.optim.SGD([extra], lr=0.1)
        for _ in range(STEPS):
            (net(torch.ones(2, 8, dtype=torch.bfloat16)) * extra.to(torch.bfloat16)).sum().backward()
            optimizer.step()

    assert costs(batches) == []
    assert costs(trained) == []


# Float64.


def regression(goals: torch.Tensor) -> None:
    net, x = nn.Linear(8, 1), torch.rand(16, 8)
    for _ in range(STEPS):
        functional.mse_loss(net(x).squeeze(1), goals).backward()


def test_targets_in_numpys_dtype_are_named_with_where_they_were_made() -> None:
    def program() -> None:
        goals = torch.from_numpy(np.ones(16))
        regression(goals)

    found = only(program)
    assert found.culprit is not None
    assert found.culprit.born is not None
    assert (found.culprit.name, found.culprit.dtype, found.count) == ("goals", "float64", STEPS)
    assert found.culprit.born.text == "goals = torch.from_numpy(np.ones(16))"
    assert found.help == "cast it where it is made: `torch.from_numpy(np.ones(16)).float()`"


def test_a_plain_attribute_in_numpys_dtype_is_named_where_a_module_first_adds_it() -> None:
    def program() -> None:
        net = ByItsCurve()
        for _ in range(STEPS):
            net(torch.ones(2, 8)).square().mean().backward()

    found = only(program)
    assert found.culprit is not None
    assert found.culprit.name == "net.curve"
    assert found.site is not None
    assert found.site.text == "self.net(x) + self.curve"


@pytest.mark.parametrize("kept", ["rows", "tensors"])
def test_batches_of_a_loader_in_numpys_dtype_are_a_note(kept: str) -> None:
    def program() -> None:
        net, goals = nn.Linear(8, 1), np.ones((12, 1))
        data = [(np.ones(8, dtype=np.float32), goal) for goal in goals]
        whole = TensorDataset(torch.ones(12, 8), torch.as_tensor(goals))
        for x, y in DataLoader(data if kept == "rows" else whole, batch_size=4):  # type: ignore[arg-type]
            (net(x) - y).square().mean().backward()

    found = only(program)
    assert found.culprit is not None
    assert (found.culprit.name, found.culprit.dtype) == ("y", "float64")


def test_float64_that_a_line_asks_for_is_none() -> None:
    def asked() -> None:
        regression(torch.ones(16, dtype=torch.float64))
        regression(torch.tensor(np.ones(16), dtype=torch.float64))
        regression(torch.ones(16).double())

    def summed() -> None:
        net, total = nn.Linear(8, 8), torch.from_numpy(np.zeros(8))
        for _ in range(STEPS):
            total += net(torch.ones(2, 8)).detach().sum(0)

    def apart() -> None:
        table = torch.from_numpy(np.ones((16, 9)))
        table = (table - table.mean(0)) / 2
        regression(table[:, 8].float())

    for program in (asked, summed, apart):
        assert costs(program) == []


@pytest.mark.parametrize("file", HEALTHY, ids=lambda file: file.stem)
def test_healthy_mixed_precision_has_no_cost(file: Path, warm: Warm) -> None:
    assert [each.rule for each in run(warm, file, ("cpu",)).findings if each.rule == "dtype-cost"] == []
