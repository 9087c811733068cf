"""Edits that are written as the program's own lines beside them are, and what an attached part is called."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from failing import Text, edits_of, fails, report_of


class Retrieval:
    def __init__(self, device: str) -> None:
        self.users = nn.Embedding(5, 4).to(device)
        self.items = nn.Embedding(7, 4).to(device)
        self.bias = nn.Embedding(7, 1)

    def scores(self) -> torch.Tensor:
        return self.users.weight @ self.items.weight.t() + self.bias.weight.squeeze(-1)


@fails(edits=["self.bias = nn.Embedding(7, 1).to(device)"], help=Text(begins="move it as `self.items` is moved"))
def test_a_layer_is_moved_where_it_is_made_as_the_layers_above_it_are() -> None:
    Retrieval("cuda:0").scores()


class Halves:
    def __init__(self, values: torch.Tensor) -> None:
        self.half = values / 2


class Keeper:
    def __init__(self, device: str) -> None:
        self.layer = nn.Linear(3, 3).to(device)
        self.halves = Halves(torch.ones(3))

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(self.layer(x) + self.halves.half)


def test_an_object_that_has_no_to_is_not_moved_as_the_layer_beside_it() -> None:
    error = report_of(lambda: Keeper("cuda:0")(torch.ones(1, 3, device="cuda:0"))).findings[0]
    assert error.edits
    assert not any("Halves(torch.ones(3)).to(" in line for line in edits_of(error))


@dataclass
class Filter:
    rate: torch.Tensor = field(default_factory=lambda: torch.eye(2))
    noise: torch.Tensor = field(default_factory=lambda: 0.1 * torch.eye(2))

    def to(self, device: str) -> Filter:
        self.rate = self.rate.to(device)
        return self

    def predict(self) -> torch.Tensor:
        return self.rate @ self.rate + self.noise


@fails(edits=["self.noise = self.noise.to(device)"])
def test_what_a_method_left_behind_is_moved_in_that_method() -> None:
    estimate = Filter().to("cuda:0")
    estimate.predict()


class Adapter(nn.Module):
    def __init__(self, base: nn.Linear) -> None:
        super().__init__()
        self.base = base
        self.down = torch.randn(2, base.in_features, requires_grad=True)
        self.up = torch.zeros(base.out_features, 2).requires_grad_()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(self.base(x) + x @ self.down.t() @ self.up.t())


@fails(
    edits=[
        "self.down = nn.Parameter(torch.randn(2, base.in_features, requires_grad=True))",
        "self.up = nn.Parameter(torch.zeros(base.out_features, 2))",
    ]
)
def test_an_attribute_that_is_trained_becomes_a_parameter() -> None:
    model = Adapter(nn.Linear(4, 4))
    model.to("cuda:0")
    model(torch.ones(1, 4, device="cuda:0"))


def start_anew(layer: nn.Module) -> None:
    if isinstance(layer, nn.Linear):
        layer.weight = nn.Parameter(torch.ones(layer.out_features, layer.in_features))


def test_a_function_that_is_handed_on_may_attach_a_part() -> None:
    def program() -> None:
        device = "cuda:0"
        net = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1)).to(device)
        net.apply(start_anew)
        net(torch.ones(2, 3, device=device))

    report = report_of(program)
    (error,) = [each for each in report.findings if each.severity != "note"]
    assert (error.cause, edits_of(error)) == ("attached-after-move", ["net.to(device)"])
    assert "before `net.0.weight` was attached" in error.message
    assert "apply" in Path(__file__).read_text().splitlines()[error.edits[0].line - 1]


def large(layer: nn.Linear) -> torch.Tensor:
    return (layer.weight.detach().cpu().abs() > 0.1).float()


@fails(
    edits=["net.to(device)"],
    message=Text("before `net.0.mask` was attached"),
)
def test_buffers_that_a_loop_registers_are_moved_with_the_model_below_it() -> None:
    device = "cuda:0"
    net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1)).to(device)
    for layer in net:
        layer.register_buffer("mask", large(layer))  # type: ignore[arg-type]
    net[0].get_buffer("mask") * net[0].get_parameter("weight")


def test_parameters_that_were_loaded_instead_of_others_are_moved_below_that_line() -> None:
    def program() -> None:
        device = "cuda:0"
        net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1)).to(device)
        file = io.BytesIO()
        torch.save(net.state_dict(), file)
        file.seek(0)
        state = torch.load(file, map_location="cpu")
        net.load_state_dict(state, assign=True)
        net(torch.ones(2, 3, device=device))

    error = report_of(program).findings[0]
    assert (error.cause, edits_of(error)) == ("attached-after-move", ["net.to(device)"])
    assert "assign=True" in Path(__file__).read_text().splitlines()[error.edits[0].line - 1]
    assert "before `net.0.weight` was attached" in error.message


def test_a_layer_that_a_later_line_adds_is_moved_below_that_line() -> None:
    def program() -> None:
        device = "cuda:0"
        net = nn.Sequential(nn.Linear(3, 4)).to(device)
        head = nn.Linear(4, 2)
        net.add_module("head", head)
        net(torch.ones(2, 3, device=device))

    error = report_of(program).findings[0]
    assert edits_of(error) in (["net.to(device)"], ["head.to(device)"], ["net.head.to(device)"])
    assert "add_module" in Path(__file__).read_text().splitlines()[error.edits[0].line - 1]


def test_a_model_is_moved_below_the_last_of_the_lines_that_replaced_its_buffers() -> None:
    def program(device: str) -> None:
        net = nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4)).to(device).eval()
        net[1].running_mean = torch.from_numpy(np.zeros(4, np.float32))
        net[1].running_var = torch.from_numpy(np.ones(4, np.float32))
        net(torch.rand(2, 3, 4, 4, device=device))

    error = report_of(lambda: program("cuda:0")).findings[0]
    assert edits_of(error) == ["net.to(device)"]
    assert "running_var" in Path(__file__).read_text().splitlines()[error.edits[0].line - 1]


@fails(edits=["head.to(device)"])
def test_what_an_inner_call_has_taken_already_stays_where_it_is() -> None:
    device = "cuda:0"
    net, head = nn.GRU(3, 4).to(device), nn.Linear(4, 2)
    x, lengths = torch.rand(5, 2, 3).to(device), torch.tensor([5, 3])
    head(last_states(net, x, lengths))


def last_states(net: nn.Module, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    return torch.as_tensor(net(nn.utils.rnn.pack_padded_sequence(x, lengths))[1])


def tables(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    angles = torch.arange(count) * 0.1
    return angles.cos(), angles.sin()


def turned(x: torch.Tensor) -> torch.Tensor:
    cos, sin = tables(4)
    return x * cos - x.flip(0) * sin


class Standard:
    def __init__(self) -> None:
        self.parts = (torch.rand(3), torch.rand(3), torch.tensor(2.0))

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        mean, spread, scale = self.parts
        return (x - mean) / spread * scale


def of_a_table() -> None:
    turned(torch.ones(4, device="cuda:0"))


def of_a_tuple() -> None:
    Standard()(torch.ones(2, 3, device="cuda:0"))


@pytest.mark.parametrize(
    ("program", "lines"),
    [
        (of_a_table, ["cos = cos.to(x.device)", "sin = sin.to(x.device)"]),
        (of_a_tuple, ["mean = mean.to(x.device)", "spread = spread.to(x.device)"]),
    ],
)
def test_what_one_statement_gives_to_several_variables_is_moved_as_one(
    program: Callable[[], object], lines: list[str]
) -> None:
    assert edits_of(report_of(program).findings[0]) == lines


class Weighted:
    def __init__(self) -> None:
        self.weights = [torch.tensor(1.0), torch.tensor([0.1]), torch.ones(2)]

    def total(self, parts: list[torch.Tensor]) -> torch.Tensor:
        return torch.stack([(weight * part).sum() for weight, part in zip(self.weights, parts, strict=True)])


@fails(edits=["loss.weights = [each.to(device) for each in loss.weights]"])
def test_a_list_of_which_a_number_stayed_behind_too_is_moved_as_a_whole() -> None:
    device = "cuda:0"
    loss = Weighted()
    loss.total([torch.ones(2, device=device)] * 3)
