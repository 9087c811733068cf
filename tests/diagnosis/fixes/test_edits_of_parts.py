"""Edits for parts of a batch, of a state or of a schedule: the part that is odd, each time that a line reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import NamedTuple

import pytest
import torch
from torch import nn

from devtrace.diagnosis.findings import Finding
from failing import culprit_of, edits_of, explained, report_of


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(9, 4)
        self.cell = nn.LSTMCell(4, 4)
        self.memory: list[torch.Tensor] = []

    def start(self, batch: int) -> None:
        self.memory = [torch.zeros(batch, 4) for _ in "hc"]

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        if not self.memory:
            self.start(len(ids))
        self.memory = list(self.cell(self.embed(ids), tuple(self.memory)))
        return self.memory[0]


class Scorer(Tagger):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(4, 4)
        self.pair: tuple[torch.Tensor, ...] | None = None

    def start(self, batch: int) -> None:
        self.pair = tuple(torch.zeros(1, batch, 4) for _ in range(2))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        if self.pair is None:
            self.start(ids.shape[1])
        out, self.pair = self.rnn(self.embed(ids).float(), self.pair)
        return torch.as_tensor(out)


@pytest.mark.parametrize(
    ("model", "edit"),
    [
        (Tagger, 'self.memory = [torch.zeros(batch, 4, device=next(self.parameters()).device) for _ in "hc"]'),
        (
            Scorer,
            "self.pair = tuple(torch.zeros(1, batch, 4, device=next(self.parameters()).device) for _ in range(2))",
        ),
    ],
)
def test_a_state_in_a_tuple_is_made_on_the_device_and_its_input_is_left_alone(model: type[Tagger], edit: str) -> None:
    ids = torch.ones(3, 2, dtype=torch.long) if model is Scorer else torch.ones(3, dtype=torch.long)
    error = report_of(lambda: model().to("cuda:0")(ids.to("cuda:0"))).findings[0]
    assert edits_of(error) == [edit]


def mixed(rows: int) -> SimpleNamespace:
    return SimpleNamespace(x=torch.ones(rows, 2), share=torch.rand(rows, 1))


def test_what_a_line_reads_twice_is_moved_both_times() -> None:
    def blend(batch: SimpleNamespace, one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(batch.share * one + other * (1 - batch.share))

    def program() -> None:
        layer = nn.Linear(2, 2).to("cuda:0")
        out = layer(torch.ones(3, 2, device="cuda:0"))
        blend(mixed(3), out, out.flip(0))

    (edit,) = edits_of(report_of(program).findings[0])
    assert edit in (
        "return torch.as_tensor(batch.share.to(one.device) * one + other * (1 - batch.share.to(one.device)))",
        "batch.share = batch.share.to(one.device)",
    )


def batches(count: int) -> Iterator[dict[str, torch.Tensor]]:
    for _ in range(count):
        weight = torch.rand(4)
        yield {"x": torch.ones(4, 2), "weight": weight, "inverse": 1 - weight}


def test_what_made_a_batch_may_go_on_with_it_before_the_loop_has_it() -> None:
    def program() -> None:
        device = "cuda:0"
        layer = nn.Linear(2, 1).to(device)
        for batch in batches(2):
            out = layer(batch["x"].to(device)).squeeze(1)
            (out * batch["weight"]).sum().backward()

    edits = edits_of(report_of(program).findings[0])
    assert edits[0] == 'batch["weight"] = batch["weight"].to(device)'


class Schedule(nn.Module):
    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net
        self.sigma = torch.linspace(0.1, 1, 8).exp()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        step = torch.randint(0, 8, (len(x),), device=x.device)
        return torch.as_tensor(self.net(x / torch.take(self.sigma, step).unsqueeze(1)))


class Levels(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.levels = torch.linspace(0, 1, 5)
        self.out = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        which = torch.full((len(x),), 3, dtype=torch.long, device=x.device)
        return torch.as_tensor(self.out(x) * self.levels.index_select(0, which).unsqueeze(-1))


@pytest.mark.parametrize("make", [lambda: Schedule(nn.Linear(2, 2)), Levels])
def test_a_table_that_no_move_takes_along_is_odd_and_not_the_index_that_follows_the_input(
    make: type[nn.Module],
) -> None:
    def program() -> None:
        model = make().to("cuda:0")
        model(torch.ones(3, 2).to("cuda:0"))

    error = report_of(program).findings[0]
    assert error.cause == "not-registered"
    assert error.devices == ("cuda:0", "cpu")
    assert any("register_buffer" in edit for edit in edits_of(error))


class Step(NamedTuple):
    state: torch.Tensor
    reward: torch.Tensor


@dataclass(frozen=True)
class Clip:
    frames: torch.Tensor
    lengths: torch.Tensor


def of_named_tuple(device: str) -> torch.Tensor:
    step = Step(torch.ones(3), torch.zeros(3))
    step = step._replace(state=step.state.to(device))
    return step.state * 2 + 0.5 * (1 - step.reward)


def of_dataclass(device: str) -> torch.Tensor:
    clip = Clip(torch.ones(3), torch.full((3,), 2.0))
    clip = replace(clip, frames=clip.frames.to(device, non_blocking=True))
    return clip.frames / clip.lengths


@pytest.mark.parametrize(
    ("program", "edit"),
    [
        (of_named_tuple, "step = step._replace(state=step.state.to(device), reward=step.reward.to(device))"),
        (
            of_dataclass,
            "clip = replace(clip, frames=clip.frames.to(device, non_blocking=True), "
            "lengths=clip.lengths.to(device, non_blocking=True))",
        ),
    ],
)
def test_what_a_replacement_leaves_out_is_moved_in_it(program: Callable[[str], object], edit: str) -> None:
    error = report_of(lambda: program("cuda:0")).findings[0]
    assert edits_of(error) == [edit]
    assert "left this tensor behind" in error.message


def test_what_moves_a_computed_part_moves_no_part_of_it_again() -> None:
    def program() -> None:
        x = torch.ones(3, device="cuda:0")
        done = torch.zeros(3)
        target = x + 0.9 * (1 - done) * x
        target + done

    edits = edits_of(report_of(program).findings[0])
    assert all(edit.count(".to(") == 1 for edit in edits), edits


class Carry(NamedTuple):
    hidden: torch.Tensor
    cell: torch.Tensor
    step: int


def of_fields(cell: nn.LSTMCell, x: torch.Tensor) -> None:
    carry = Carry(torch.zeros(2, 4), torch.zeros(2, 4), 0)
    for _ in range(2):
        hidden, memory = cell(x, carry[:2])
        carry = carry._replace(hidden=hidden, cell=memory)


def of_the_last_two(cell: nn.LSTMCell, x: torch.Tensor) -> None:
    given = [torch.ones(1), torch.zeros(2, 4), torch.zeros(2, 4)]
    cell(x, given[-2:])


def of_two_by_name(cell: nn.LSTMCell, x: torch.Tensor) -> None:
    states, first = {"a": (torch.zeros(2, 4), torch.zeros(2, 4), "x")}, 0
    cell(x, states["a"][first : first + 2])


@pytest.mark.parametrize("program", [of_fields, of_the_last_two, of_two_by_name])
@pytest.mark.parametrize("ask", [explained, lambda program: report_of(program).findings[0]])
def test_a_slice_of_a_tuple_or_list_is_no_tensor_that_moves(
    program: Callable[[nn.LSTMCell, torch.Tensor], None], ask: Callable[[Callable[[], object]], Finding]
) -> None:
    def run() -> None:
        program(nn.LSTMCell(4, 4).to("cuda:0"), torch.ones(2, 4, device="cuda:0"))

    finding = ask(run)
    written = [finding.help or "", *edits_of(finding)]
    assert not any("].to(" in text for text in written), written


def halves_of(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return x.chunk(2, dim=-1)


class Halves(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.both = nn.Bilinear(2, 2, 3)

    def forward(self, pairs: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(self.both(*halves_of(pairs)))


@pytest.mark.parametrize("ask", [explained, lambda program: report_of(program).findings[0]])
def test_one_line_that_moves_what_two_tensors_are_made_of_is_advised_once(
    ask: Callable[[Callable[[], object]], Finding],
) -> None:
    finding = ask(lambda: Halves().to("cuda:0")(torch.ones(5, 4)))
    assert len(edits_of(finding)) == 1
    assert " too" not in finding.help


class Parallel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.second = nn.Linear(4, 2)

    def spread(self) -> Parallel:
        self.first.to("cuda:0")
        self.second.to("cuda:1")
        return self

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.first(x).relu()
        return torch.as_tensor(self.second(hidden))


def test_what_is_handed_to_a_layer_of_another_device_is_moved_to_where_that_layer_is() -> None:
    finding = report_of(lambda: Parallel().spread()(torch.ones(2, 4, device="cuda:0")), "cuda:2").findings[0]
    assert culprit_of(finding).name == "hidden"
    (edit,) = edits_of(finding)
    assert "hidden.to(next(self.second.parameters()).device)" in edit
