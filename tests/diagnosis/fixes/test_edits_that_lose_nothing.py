"""An edit does all that was proven of it, and nothing that the proof would have refused."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from devtrace.diagnosis.edits import merged
from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.diagnosis.findings import Edit, Finding
from devtrace.trace.ids import OpId, TensorId
from failing import error_of


def inserted(line: int, *lines: str) -> Edit:
    return Edit("train.py", None, line, "", "\n".join(lines))


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (["net_ema.to(device)"], ["ema.to(device)"], ["net_ema.to(device)", "ema.to(device)"]),
        (["x = x.to(device)"], ["x = x.to(d"], ["x = x.to(device)", "x = x.to(d"]),
        (["a.to(d)", "b.to(d)"], ["b.to(d)", "c.to(d)"], ["a.to(d)", "b.to(d)", "c.to(d)"]),
        (["b.to(d)"], ["b.to(d)"], ["b.to(d)"]),
        (["    a.to(d)"], ["a.to(d)"], ["    a.to(d)", "a.to(d)"]),
    ],
)
def test_lines_added_below_one_line_are_all_added_and_each_once(
    one: list[str], other: list[str], both: list[str]
) -> None:
    assert merged([inserted(3, *one), inserted(3, *other)]) == (inserted(3, *both),)


def test_a_leaf_that_is_trained_is_not_replaced_by_its_moved_copy_however_that_is_moved() -> None:
    def by_cuda() -> object:
        rows = torch.ones(2, 3)
        weight = torch.ones(3, requires_grad=True)
        rows = rows.cuda()
        return (rows * weight).sum()

    def by_to() -> object:
        rows = torch.ones(2, 3)
        weight = torch.ones(3, requires_grad=True)
        rows = rows.to("cuda:0")
        return (rows * weight).sum()

    found = [error_of(program) for program in (by_cuda, by_to)]
    assert not any(edit.after.strip().startswith("weight = weight.") for each in found for edit in each.edits)


def _resumed(**options: object) -> Finding:
    def program() -> None:
        model = nn.Linear(3, 1)
        optimizer = torch.optim.Adam(model.parameters(), **options)  # type: ignore[arg-type]
        model(torch.ones(2, 3)).sum().backward()
        optimizer.step()
        model.to("cuda:0")
        optimizer.zero_grad()
        model(torch.ones(2, 3, device="cuda:0")).sum().backward()
        optimizer.step()

    return error_of(program)


def test_the_count_of_steps_stays_on_the_cpu_where_the_optimizer_reads_it() -> None:
    (edit,) = _resumed().edits
    added = edit.after
    assert 'if k != "step" and hasattr(v, "to")' in added


def test_the_ops_that_take_nothing_of_what_moves_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    def program(rounds: int) -> None:
        model = nn.Linear(3, 3).to("cuda:0")
        table = torch.ones(3)
        x = torch.ones(2, 3, device="cuda:0")
        for _ in range(rounds):
            x = model(x)
        x + table

    looked_at = list[int]()
    inputs = TraceQueries.inputs

    def counted(queries: TraceQueries, op: OpId) -> list[TensorId]:
        looked_at.append(op)
        return inputs(queries, op)

    monkeypatch.setattr(TraceQueries, "inputs", counted)
    counts = []
    for rounds in (5, 50, 500):
        looked_at.clear()
        assert error_of(lambda rounds=rounds: program(rounds)).edits  # type: ignore[misc]
        counts.append(len(looked_at))
    assert all(more == fewer for fewer, more in pairwise(counts))


class Curious:
    """Notes what it is asked for; nothing of it is devtrace's to run."""

    asked: list[str]

    def __init__(self) -> None:
        self.asked = []

    def __getattr__(self, name: str) -> object:
        self.asked.append(name)
        raise AttributeError(name)


class Shifted(nn.Module):
    curious = Curious()

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(2))
        self.shift = torch.zeros(2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.scale + self.shift


def test_what_a_class_keeps_is_not_asked_whether_it_is_a_function() -> None:
    Shifted.curious.asked.clear()
    found = error_of(lambda: Shifted().to("cuda:0")(torch.ones(2, device="cuda:0")))
    assert "register_buffer" in found.edits[0].after
    assert Shifted.curious.asked == []


class _Rarity:
    """Weights of the classes, counted from the data, that a call looks up."""

    def __init__(self, labels: torch.Tensor) -> None:
        self.scale = torch.bincount(labels, minlength=3).float() + 1

    def __call__(self) -> torch.Tensor:
        return self.scale

    def weights(self) -> torch.Tensor:
        """Return them by a method."""
        return self.scale


class _Data:
    """Rows and their labels, of which the loss's weights are made too."""

    def __init__(self) -> None:
        self.rows, self.labels = torch.ones(8, 4), torch.arange(8) % 3


def _by_a_loader(net: nn.Module, data: _Data, rarity: _Rarity) -> None:
    net.to("cuda:0")
    for rows, labels in DataLoader(TensorDataset(data.rows, data.labels), batch_size=4, pin_memory=True):
        out = net(rows.to("cuda:0"))
        nn.functional.cross_entropy(out, labels.to("cuda:0"), weight=rarity())


def _by_hand(net: nn.Module, data: _Data, rarity: _Rarity) -> None:
    net.to("cuda:0")
    for at in (0, 4):
        rows, labels = data.rows[at : at + 4].pin_memory(), data.labels[at : at + 4].pin_memory()
        out = net(rows.to("cuda:0"))
        nn.functional.cross_entropy(out, labels.to("cuda:0"), weight=rarity.weights())


@pytest.mark.parametrize(("train", "call"), [(_by_a_loader, "rarity()"), (_by_hand, "rarity.weights()")])
def test_what_is_pinned_later_is_not_moved_for_what_was_computed_from_it(
    train: Callable[[nn.Module, _Data, _Rarity], None], call: str
) -> None:
    def program() -> None:
        data = _Data()
        net = nn.Linear(4, 3)
        rarity = _Rarity(data.labels)
        train(net, data, rarity)

    (edit,) = error_of(program).edits
    assert f"{call}.to(out.device)" in edit.after
