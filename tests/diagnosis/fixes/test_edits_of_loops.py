"""Edits of variables that loops and comprehensions bind, of what an object's `to` returns, and of lists of tensors."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import reduce
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_sequence

from devtrace.diagnosis.findings import Finding
from failing import BOTH, Text, both, edits_of, error_of, fails, report_of


class Scale:
    def __init__(self) -> None:
        self.mean = torch.tensor([0.4, 0.5, 0.6]).view(-1, 1, 1)

    def __call__(self, images: torch.Tensor) -> torch.Tensor:
        return images - self.mean


class Flip:
    def __call__(self, images: torch.Tensor) -> torch.Tensor:
        return images.flip(-1)


class Chain:
    def __init__(self, *steps: Callable[[torch.Tensor], torch.Tensor]) -> None:
        self.steps = list(steps)

    def __call__(self, images: torch.Tensor) -> torch.Tensor:
        for step in self.steps:
            images = step(images)
        return images


def test_what_one_object_of_a_loop_has_is_not_moved_of_all_of_them() -> None:
    chain = Chain(Flip(), Scale())
    error = report_of(lambda: chain(torch.rand(2, 3, 4, 4, device="cuda:0"))).findings[0]
    assert edits_of(error)
    assert not any("step.mean" in line for line in edits_of(error))


def new_member() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 3))


def votes(device: str) -> torch.Tensor:
    members = [new_member() for _ in range(2)]
    for member in members:
        member.to(device)
    members.append(new_member())
    x = torch.rand(5, 4).to(device)
    return torch.stack([member(x) for member in members])


def test_the_variable_of_a_comprehension_is_not_that_of_a_loop_above_it() -> None:
    error = report_of(lambda: votes("cuda:0")).findings[0]
    assert not any("member.to(" in line for line in edits_of(error))


def packed_states(device: str) -> torch.Tensor:
    net = nn.GRU(3, 5).to(device)
    packed: Any = pack_sequence([torch.rand(n, 3) for n in (5, 3, 2)])
    packed.to(device)
    return torch.as_tensor(net(packed)[1])


@fails(edits=["packed = packed.to(device)"], message=Text("`packed[0]` is on cpu"))
def test_a_packed_sequence_whose_move_was_dropped_is_kept() -> None:
    packed_states("cuda:0")


def states(device: str) -> torch.Tensor:
    net = nn.LSTM(3, 5).to(device)
    x = torch.rand(4, 2, 3)
    return torch.as_tensor(net(x)[0])


@fails(edits=["x = torch.rand(4, 2, 3).to(device)"])
def test_the_first_state_that_a_recurrent_layer_makes_is_where_its_moved_input_is() -> None:
    states("cuda:0")


def rows(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.rand(count, 5, 3), torch.zeros(count)


@fails(edits=["net(x.to(device))"])
def test_the_input_of_a_recurrent_layer_is_moved_in_its_call() -> None:
    device = "cuda:0"
    net = nn.GRU(3, 4).to(device)
    x, _ = rows(4)
    net(x)


class Averaged:
    def __init__(self, net: nn.Module) -> None:
        self.shadow = {name: p.detach().cpu().clone() for name, p in net.named_parameters()}

    @contextmanager
    def scope(self, net: nn.Module) -> Iterator[None]:
        for name, p in net.named_parameters():
            p.data = self.shadow[name]
        yield


def averaged_scores(device: str) -> torch.Tensor:
    net = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 1)).to(device)
    averaged = Averaged(net)
    with averaged.scope(net), torch.no_grad():
        return torch.as_tensor(net(torch.rand(5, 4, device=device)))


def test_a_model_is_not_moved_below_the_line_that_only_made_what_replaced_its_parameters() -> None:
    error = report_of(lambda: averaged_scores("cuda:0")).findings[0]
    assert "net.to(device)" not in edits_of(error)


class Positions(nn.Module):
    ids: torch.Tensor | None

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(32, 6)
        self.register_buffer("ids", None, persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.ids is None:
            self.ids = torch.arange(x.shape[1])
        return torch.as_tensor(x + self.table(self.ids))


@fails(cause="attached-after-move", message=Text("before `net.0.ids` was attached"))
def test_a_buffer_that_a_call_made_is_what_was_attached_and_not_its_layer() -> None:
    net = nn.Sequential(Positions(), nn.Linear(6, 1)).to("cuda")
    net(torch.rand(2, 5, 6, device="cuda"))


class Waves(nn.Module):
    def forward(self, t: torch.Tensor) -> torch.Tensor:
        bands = torch.arange(4, device=t.device)
        return torch.outer(t.float(), bands).cos()


def ramp(levels: torch.Tensor) -> torch.Tensor:
    grid = torch.linspace(0, 1, 4, device=levels.device)
    return torch.maximum(levels[:, None], grid)


@pytest.mark.parametrize("embed", [Waves(), ramp])
@fails(*BOTH, edits=["steps = torch.full((2,), step, device=device)"])
def test_what_is_made_on_the_device_of_a_moved_tensor_moves_with_it(embed: Callable[..., torch.Tensor]) -> None:
    device = "cuda:0"
    head = nn.Linear(4, 1).to(device)
    for step in range(3):
        steps = torch.full((2,), step)
        head(embed(steps))


@fails(*BOTH, edits=["total = total + (rows * weight).sum()"])
def test_what_is_only_computed_with_stays_where_it_is_without_a_copy() -> None:
    weight, total = torch.ones(4, device="cuda:0"), torch.zeros((), device="cuda:0")
    for rows in torch.ones(2, 3, 4, device="cuda:0"):
        total = total + (rows.cpu() * weight).sum()


@fails(*BOTH, edits=["rows.clone().add_(weight)"])
def test_what_is_written_into_stays_where_it_is_as_a_copy() -> None:
    weight = torch.ones(4, device="cuda:0")
    for rows in torch.ones(2, 3, 4, device="cuda:0"):
        rows.cpu().add_(weight)


Ask = Callable[[Callable[[], object]], Finding]


def layer() -> nn.Linear:
    return nn.Linear(4, 4).to("cuda:0")


def ones() -> torch.Tensor:
    return torch.ones(2, 4, device="cuda:0")


def both_layers(x: torch.Tensor) -> list[torch.Tensor]:
    return [layer()(x), torch.zeros(2, 4)]


def one_by_one(x: torch.Tensor) -> Iterator[torch.Tensor]:
    yield layer()(x)
    yield torch.zeros(2, 4)


class Branches(nn.Module):
    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"near": x, "far": torch.zeros(2, 4)}


def joined() -> object:
    return torch.cat(both_layers(ones()), 1)


def unpacked() -> object:
    return torch.add(*both_layers(ones()))


def reduced() -> object:
    return reduce(operator.add, one_by_one(ones()))


def summed() -> object:
    branches = Branches()
    return sum(branches(ones()).values())


@pytest.mark.parametrize("program", [joined, unpacked, reduced, summed])
@both
def test_what_gives_several_tensors_is_not_moved_as_one_nor_named_so(program: Callable[[], object], found: Ask) -> None:
    finding = found(program)
    wrong = ("both_layers(ones()).to", "both_layers(ones())` is", "one_by_one(ones()).to", ".values()")
    assert not any(text in f"{finding.message} {finding.help} {edits_of(finding)}" for text in wrong), finding.help


def norms_of_models() -> object:
    models = [nn.Linear(3, 1).to(f"cuda:{i}") for i in range(2)]
    return sum(m.weight.pow(2).sum() for m in models)


def means_of_experts() -> object:
    experts = (nn.Linear(4, 2, device="cuda:1"), nn.Linear(4, 2, device="cuda:0"))
    return sum(each(torch.ones(2, 4).to(each.weight.device)).mean() for each in experts)


@pytest.mark.parametrize(
    ("program", "edit"),
    [
        (norms_of_models, "m.weight.pow(2).sum().to(models[0].weight.device)"),
        (means_of_experts, ".mean().to(next(experts[0].parameters()).device)"),
    ],
)
@both
def test_what_a_sum_computes_of_each_is_brought_to_where_the_first_is(
    program: Callable[[], object], edit: str, found: Ask
) -> None:
    assert edit in (found(program).help or "")
    assert edit in "".join(edits_of(error_of(program)))


def outputs_of_two() -> object:
    nets = [nn.Linear(3, 1).to(f"cuda:{i}") for i in range(2)]
    outs = [net(torch.ones(2, 3).to(net.weight.device)) for net in nets]
    return torch.stack(outs)


def shards_in_turn() -> object:
    shards = tuple(torch.ones(2, 3, device=f"cuda:{i % 2}") for i in range(4))
    return torch.vstack(shards)


@pytest.mark.parametrize(
    ("program", "edit"),
    [
        (outputs_of_two, "outs = [each.to(outs[0].device) for each in outs]"),
        (shards_in_turn, "shards = tuple(each.to(shards[0].device) for each in shards)"),
    ],
)
def test_a_list_of_two_devices_is_brought_to_that_of_its_first_where_a_line_takes_it_whole(
    program: Callable[[], object], edit: str
) -> None:
    assert edits_of(error_of(program)) == [edit]


def boxes_read_twice() -> object:
    deltas, boxes = ones(), torch.zeros(2, 4)
    return deltas * (boxes[:, 2:] - boxes[:, :2] + 1).repeat(1, 2) + boxes


@both
def test_a_variable_that_is_moved_above_a_line_needs_no_other_move_in_it(found: Ask) -> None:
    finding = found(boxes_read_twice)
    assert sum(edit.count(".to(") for edit in edits_of(finding)) == 1
    assert " too" not in finding.help


def causal(n: int) -> torch.Tensor:
    return torch.full((n, n), float("-inf")).triu(1)


def masks_that_torch_adds() -> object:
    attention = nn.MultiheadAttention(16, 2, batch_first=True).to("cuda:0")
    x = torch.ones(2, 9, 16, device="cuda:0")
    return attention(x, x, x, attn_mask=causal(9), key_padding_mask=torch.zeros(2, 9), need_weights=False)


def test_what_torch_makes_of_two_arguments_has_the_name_of_one() -> None:
    assert error_of(masks_that_torch_adds).message.startswith("`causal(9)` is on cpu")
