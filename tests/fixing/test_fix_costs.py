"""`devtrace fix --costs`: a fix of a cost is kept if the program computes the same with fewer copies and waits."""

from __future__ import annotations

import json
import math
import os
import textwrap
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import nbformat
import numpy as np
import pytest
import torch
from torch import nn

from corpus_programs import COSTLY
from devtrace.cli.main import main
from devtrace.diagnosis.findings import Edit, Finding, Holder, Site
from devtrace.diagnosis.slugs import Severity
from devtrace.fixing import values
from devtrace.fixing.costs import Costs
from devtrace.fixing.rounds import ProgramRun, Rounds
from devtrace.fixing.runner import Runner
from devtrace.fixing.source_text import SourceText
from fix_rounds import cheaper, story
from programs import Program
from warm import Warm

from .test_fix_command import git_apply

OFFERED = {"full_batch": [(20, 12), (12, 4)], "masked_pool": [(12, 5)]}
"""Of the programs to whose costs edits are offered: copies or waits before and after each."""


@pytest.mark.one_in(4)
@pytest.mark.slow
@pytest.mark.parametrize("program", COSTLY, ids=lambda program: program.name)
def test_every_edit_that_is_offered_for_a_cost_is_proven(program: Program, warm: Warm) -> None:
    costs = cheaper(warm, program)
    assert costs.rejected == [], story(costs.rounds)
    assert costs.rounds.last.values
    assert [change.counts for change in costs.rounds.changes] == OFFERED.get(program.name, [])


def cost(count: int, line: int = 1, after: str = "x = 2", severity: Severity = "warning") -> Finding:
    edits = (Edit("a.py", None, line, f"x = {line}", after),) if after else ()
    site = Site("a.py", line, text=f"line {line}")
    return Finding("host-sync", severity, "", ("cuda:0",), site, line, count=count, edits=edits)


def once(count: int = 1) -> Finding:
    return cost(count, after="", severity="note")


def costs_of(*runs: ProgramRun, most: int = 9) -> Costs:
    """Let a program have these runs."""
    left = list(runs)

    def run(texts: Mapping[str, SourceText], own: frozenset[str]) -> ProgramRun:
        return left.pop(0)

    rounds = Rounds(run, lambda _: SourceText("a.py", b"x = 1\nx = 2\n"), most)
    rounds.go()
    costs = Costs(rounds)
    costs.go()
    assert left == []
    return costs


def run_with(*findings: Finding, x: float = 1.0, output: str = "", **others: float) -> ProgramRun:
    return ProgramRun("ended", findings, values={"x": x, **others}, output=output)


def test_what_gives_the_same_for_less_is_kept_with_the_counts() -> None:
    costs = costs_of(run_with(cost(9)), run_with(once()))
    assert [change.counts for change in costs.rounds.changes] == [(9, 1)]
    assert costs.rejected == []


def test_how_a_fix_was_proven_is_in_its_finding() -> None:
    costs = costs_of(run_with(cost(9), y=2.0), run_with(once(), y=2.0))
    (kept,) = [change.finding for change in costs.rounds.changes]
    assert {edit.grade for edit in kept.edits} == {"proven"}
    assert kept.proof == "the same output and 2 values as without it, 8 copies or waits fewer (9 before, 1 after)"


def growing(count: int) -> Finding:
    return replace(cost(count), rule="memory-growth", holders=(Holder("losses", "graph", 5 << 20, None, None, count),))


def test_a_fix_of_what_grows_is_kept_where_the_peak_falls_although_it_copies_more() -> None:
    before, after = (ProgramRun("ended", (each,), values={"x": 1.0}) for each in (growing(9), once(30)))
    costs = costs_of(replace(before, peaks={"cuda:0": 9 << 20}), replace(after, peaks={"cuda:0": 4 << 20}))
    (kept,) = [change.finding for change in costs.rounds.changes]
    assert {edit.grade for edit in kept.edits} == {"proven"}
    assert kept.proof == "the same output and 1 value as without it; the peak of cuda:0 falls from 9.0 MiB to 4.0 MiB"


def test_a_fix_of_what_grows_is_taken_back_where_the_peak_stays() -> None:
    before, after = (ProgramRun("ended", (each,), values={"x": 1.0}) for each in (growing(9), once()))
    costs = costs_of(replace(before, peaks={"cuda:0": 9 << 20}), replace(after, peaks={"cuda:0": 9 << 20}))
    assert ["the peak does not fall" in why for _, why in costs.rejected] == [True]


@pytest.mark.parametrize(
    ("after", "why"),
    [
        ((run_with(once(), x=2.0), run_with(cost(9))), "changes values (x)"),
        ((run_with(once(), output="2"), run_with(cost(9))), "changes values (what the program prints)"),
        ((run_with(cost(9, 2, "")),), "does not make the count smaller"),
        ((run_with(once(10)),), "does not make the count smaller"),
        ((ProgramRun("raised", (), "KeyError: 3"),), "ends differently: KeyError: 3"),
    ],
    ids=["another value", "another output", "as many that need not be", "more in all", "another end"],
)
def test_what_is_not_proven_is_taken_back_with_a_reason(after: tuple[ProgramRun, ...], why: str) -> None:
    costs = costs_of(run_with(cost(9)), *after)
    assert [why in reason for _, reason in costs.rejected] == [True]
    assert (costs.rounds.texts, costs.rounds.changes) == ({}, [])
    assert costs.rounds.last == run_with(cost(9))
    assert costs.rounds.is_proven


def test_the_fixes_before_one_that_is_taken_back_stay() -> None:
    second = cost(4, 2, "x = 20")
    costs = costs_of(run_with(cost(9), second), run_with(second), run_with(x=3.0), run_with(second))
    assert [len(costs.rounds.changes), len(costs.rejected)] == [1, 1]
    assert costs.rounds.texts["a.py"].data == b"x = 2\nx = 2\n"


def test_a_value_that_differs_by_itself_counts_for_nothing() -> None:
    costs = costs_of(run_with(cost(9), began=1.0), run_with(once(), began=2.0), run_with(cost(9), began=3.0))
    assert costs.rejected == []


def test_a_program_without_values_proves_nothing() -> None:
    costs = costs_of(ProgramRun("ended", (cost(9),)), ProgramRun("ended", (once(),)))
    assert ["nothing that could be compared" in why for _, why in costs.rejected] == [True]


class Batch:
    def __init__(self) -> None:
        self.images = torch.arange(4.0)
        self.owner = self


def test_values_are_those_of_all_that_the_variables_lead_to() -> None:
    layer = nn.Linear(2, 1)
    found = values.values_of(
        {"a": 1, "b": {"c": [2.5, "d"]}, "model": nn.Sequential(layer), "batch": Batch(), "os": os}
    )
    assert {name: found[name] for name in ("a", "b['c'][0]", "b['c'][1]")} == {
        "a": 1,
        "b['c'][0]": 2.5,
        "b['c'][1]": "d",
    }
    assert found["model.0.weight"]["numbers"] == layer.weight.reshape(-1).tolist()
    assert found["batch.images"] == {"shape": [4], "dtype": "torch.float32", "numbers": [0.0, 1.0, 2.0, 3.0]}
    assert not any(name.startswith("os") for name in found)


def test_of_a_large_tensor_evenly_spread_numbers_are_values() -> None:
    numbers = values.values_of({"x": torch.arange(1_000_000)})["x"]["numbers"]
    assert len(numbers) <= values.MOST_NUMBERS
    assert numbers[-1] > 990_000


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (torch.tensor([1.0, 0.0]), torch.tensor([1.0 + 1e-6, 1e-8]), True),
        (torch.tensor([1.0]), torch.tensor([1.01]), False),
        (torch.tensor([1.0]), torch.tensor([[1.0]]), False),
        (torch.tensor([math.nan]), torch.tensor([math.nan]), True),
        (torch.tensor([1, 2]), torch.tensor([1, 3]), False),
        (torch.tensor([1 + 2j]), torch.tensor([1 + 3j]), False),
        (torch.tensor([True]), torch.tensor([False]), False),
        (np.arange(3), np.arange(3), True),
        (0.1 + 0.2, 0.3, True),
        (3, 4, False),
        ("best", "last", False),
    ],
)
def test_values_are_the_same_up_to_their_last_bits(one: object, other: object, same: bool) -> None:
    changed = values.differing(values.values_of({"x": one}), values.values_of({"x": other}))
    assert changed == ([] if same else ["x"])


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("loss 0.1234\n", "loss 0.1235\n", True),
        ("loss 0.1234\n", "loss 0.1334\n", False),
        ("loss 1.5e-05\n", "loss 2.5e-05\n", False),
        ("epoch 3\n", "epoch 4\n", False),
        ("best\n", "last\n", False),
        ("", "1.0\n", False),
    ],
)
def test_printed_numbers_are_the_same_up_to_their_last_digit(one: str, other: str, same: bool) -> None:
    assert values.is_same_output(one, other) == same


TRAINING = """import torch
from torch import nn

device = torch.device("cuda:0")
model = nn.Linear(8, 2).to(device)
shift = torch.ones(2)
weights = torch.ones(2)
inputs = [torch.randn(4, 8) for _ in range(12)]
total = 0.0
for x in inputs:
    loss = ((model(x.to(device)) + shift) * weights.to(device)).square().mean()
    total += loss.item()
print(f"mean loss {total / len(inputs):.4f}")
"""
IN_A_FUNCTION = f"def main():\n{textwrap.indent(TRAINING, '    ')}\n\nmain()\n"


@pytest.mark.one_in(2)
@pytest.mark.slow
@pytest.mark.parametrize("text", [TRAINING, IN_A_FUNCTION], ids=["variables", "output only"])
def test_a_bug_and_the_costs_behind_it_are_fixed_in_one_patch(
    text: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """In processes of their own: only a seed that devtrace gives them lets the random numbers agree."""
    Path("train.py").write_text(text)
    assert main(["fix", "--costs", "--json", "fixed.json", "train.py"]) == 0
    printed = capfd.readouterr()
    summary = [line.removeprefix("devtrace: ") for line in printed.err.splitlines() if line.startswith("devtrace: ")]
    assert [line.partition(":")[0] for line in summary[-6:]] == [
        "fixed", "cheaper, with the same values", "  Proven", "cheaper, with the same values", "  Proven", "proven",
    ]  # fmt: skip
    saved = json.loads(Path("fixed.json").read_text())
    assert [each["edits"][0]["grade"] for each in saved["findings"]] == ["proven"] * 3
    assert [f"  Proven: {each['proof']}" for each in saved["findings"][1:]] == [summary[-4], summary[-2]]
    assert "11 copies or waits fewer (12 before, 1 after)" in summary[-2]
    assert [each["severity"] for each in saved["left"]] == ["note"] * len(saved["left"])
    assert "(27 before, 16 after) 12 copies to the device" in printed.err
    assert "(12 before, 1 after) `loss.item()` made the CPU wait" in printed.err
    assert "(27 before, 16 after) 12 copies" in printed.out
    assert "(12 before, 1 after) `loss.item()`" in printed.out
    git_apply(folder, printed.out)
    assert main(["fix", "--costs", "train.py"]) == 0
    assert capfd.readouterr().out == ""


def test_costs_of_a_program_that_does_not_end_stay_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text("x = 1\n")
    monkeypatch.setattr(Runner, "run", lambda *_: replace(run_with(cost(9)), ending="time"))
    assert main(["fix", "--costs", "--timeout", "5", "a.py"]) == 0
    printed = capfd.readouterr()
    assert (printed.out, "costs were left as they are" in printed.err) == ("", True)


@pytest.mark.slow
def test_a_notebooks_costs_are_fixed(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    head, _, loop = TRAINING.replace(" + shift", "").partition("inputs = ")
    cells = map(nbformat.v4.new_code_cell, (head, f"inputs = {loop}"))
    nbformat.write(nbformat.v4.new_notebook(cells=list(cells)), folder / "a.ipynb")
    assert main(["fix", "--costs", "a.ipynb"]) == 0
    printed = capfd.readouterr()
    assert printed.err.count("cheaper, with the same values: In[2]") == 2
    assert "weights = weights.to(device)" in printed.out
