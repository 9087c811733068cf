"""Some of what goes on together was moved: the rest is moved in the same tuple, dictionary or call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
import torch
from torch import as_tensor, nn

import devtrace

ROWS = [(torch.ones(2, 3), torch.ones(2, 1)) for _ in range(2)]


def moved(x: torch.Tensor, y: torch.Tensor, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    return x.to(device), y


def of_a_returned_tuple(net: nn.Module, device: str) -> None:
    for batch in ROWS:
        x, y = moved(*batch, device)
        (net(x) - y).sum().backward()


def named(x: torch.Tensor, y: torch.Tensor, device: str) -> dict[str, torch.Tensor]:
    return {"size": torch.ones(len(x)), "x": x.cuda(), "y": y[:, :1]}


def of_a_returned_dictionary(net: nn.Module, device: str) -> None:
    batch = named(*ROWS[0], device)
    net(batch["x"]) - batch["y"]


def halves(x: torch.Tensor, y: torch.Tensor, device: str) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    for at in range(2):
        yield x[at].to(device), y[at]


def of_what_a_generator_yields(net: nn.Module, device: str) -> None:
    for _, (x, y) in enumerate(halves(*ROWS[0], device)):
        net(x) - y


@dataclass
class Batch:
    x: torch.Tensor
    y: torch.Tensor

    def to(self, device: str) -> Batch:
        return Batch(self.x.to(device), self.y)


def of_a_new_object(net: nn.Module, device: str) -> None:
    batch = Batch(*ROWS[0]).to(device)
    net(batch.x) - batch.y


class Trainer:
    def __init__(self, net: nn.Module) -> None:
        self.net = net

    def loss(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        out = self.net(x)
        return torch.as_tensor((out - y).mean())


def of_a_call_of_a_method(net: nn.Module, device: str) -> None:
    trainer = Trainer(net)
    for x, y in ROWS:
        trainer.loss(x.to(device), y).backward()


def of_the_words_of_a_call(net: nn.Module, device: str) -> None:
    trainer = Trainer(net)
    for x, y in ROWS:
        trainer.loss(y=y, x=x.to(device)).backward()


def edits_of(program: Callable[[nn.Module, str], None]) -> list[str]:
    with pytest.raises(RuntimeError), devtrace.record(simulate="cuda:1") as recording:
        program(nn.Linear(3, 1).to("cuda:0"), "cuda:0")
    return [edit.after.strip() for edit in recording.report.findings[0].edits]


PROGRAMS: dict[Callable[[nn.Module, str], None], str] = {
    of_a_returned_tuple: "return x.to(device), y.to(device)",
    of_a_returned_dictionary: 'return {"size": torch.ones(len(x)), "x": x.cuda(), "y": y[:, :1].cuda()}',
    of_what_a_generator_yields: "yield x[at].to(device), y[at].to(device)",
    of_a_new_object: "return Batch(self.x.to(device), self.y.to(device))",
    of_a_call_of_a_method: "trainer.loss(x.to(device), y.to(device)).backward()",
    of_the_words_of_a_call: "trainer.loss(y=y.to(device), x=x.to(device)).backward()",
}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_an_element_is_moved_as_another_is(program: Callable[[nn.Module, str], None]) -> None:
    assert edits_of(program) == [PROGRAMS[program]]


def paired(x: torch.Tensor, device: str) -> tuple[torch.Tensor, int]:
    return x.to(device), len(x)


def without_a_table(net: nn.Module, device: str) -> None:
    table = torch.ones(2, 1)
    x, _ = paired(ROWS[0][0], device)
    net(x) - table


def test_an_element_that_is_another_value_stays() -> None:
    assert not any("len(x).to" in line for line in edits_of(without_a_table))


def unpadded(rows: torch.Tensor, lengths: torch.Tensor, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    return rows.to(device), lengths


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(3, 4, batch_first=True)

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
        out = self.rnn(packed)[1]
        return torch.as_tensor(out * lengths[:, None])


def tag(_: nn.Module, device: str) -> None:
    rows, lengths = unpadded(torch.ones(2, 5, 3), torch.tensor([5, 3]), device)
    Tagger().to(device)(rows, lengths)


STAYING: dict[Callable[[nn.Module, str], None], str] = {
    tag: "return torch.as_tensor(out * lengths.to(out.device)[:, None])",
}


@pytest.mark.parametrize("program", STAYING, ids=lambda program: program.__name__)
def test_what_a_line_above_takes_on_the_cpu_is_moved_below_that_line(
    program: Callable[[nn.Module, str], None],
) -> None:
    assert edits_of(program) == [STAYING[program]]
    with devtrace.simulate("cuda:1"), pytest.raises(RuntimeError) as raised:
        program(nn.Linear(3, 1).to("cuda:0"), "cuda:0")
    untraced = devtrace.explain(raised.value).findings[0]
    assert [edit.after.strip() for edit in untraced.edits] == [STAYING[program]]


def given_as_tensors(x: torch.Tensor, y: torch.Tensor, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.as_tensor(x, device=device), y


def sent(x: torch.Tensor, y: torch.Tensor, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    return as_tensor(x, device=device), y


@pytest.mark.parametrize("bring", [given_as_tensors, sent])
def test_a_function_that_brings_another_there_is_no_method_of_the_element(
    bring: Callable[[torch.Tensor, torch.Tensor, str], tuple[torch.Tensor, torch.Tensor]],
) -> None:
    def program(net: nn.Module, device: str) -> None:
        x, y = bring(*ROWS[0], device)
        net(x) - y

    assert edits_of(program) == ["net(x) - y.to(x.device)"]
