"""Edits where a line takes a list of tensors, of which some are elsewhere: no list is moved as if it were a tensor."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from functools import reduce

import pytest
import torch
from torch import nn

from devtrace.diagnosis.findings import Finding
from failing import both, edits_of, error_of

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
