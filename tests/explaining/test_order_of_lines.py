"""Nobody recorded what ran, so that it is read; what the lines of a frame did comes in the order of these lines.

So a line that moved some of what a call gave is named as the line that left the rest behind.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn

from failing import Text, assert_tells, culprit_of, explained


class Step(NamedTuple):
    state: Tensor
    reward: Tensor


def sampled(n: int) -> tuple[Tensor, Tensor, Tensor]:
    steps = [Step(torch.randn(4), torch.tensor(float(at))) for at in range(n)]
    return torch.stack([each.state for each in steps]), torch.tensor([0] * n), torch.stack([s.reward for s in steps])


def of_a_memory() -> None:
    net = nn.Linear(4, 2).to("cuda:0")
    device = torch.device("cuda:0")
    states, actions, rewards = sampled(3)
    states = states.to(device)
    actions = actions.to(device)
    chosen = net(states).gather(1, actions[:, None])[:, 0]
    torch.nn.functional.mse_loss(chosen, rewards + 0.9 * chosen)


def graph(n: int) -> tuple[Tensor, Tensor]:
    links = (torch.rand(n, n) > 0.5).float()
    return links / links.sum(1, keepdim=True).clamp(min=1), torch.randn(n, 3)


def spread(x: Tensor, links: Tensor) -> Tensor:
    return links @ x


def of_a_graph() -> None:
    device = torch.device("cuda:0")
    links, x = graph(5)
    x = x.to(device)
    spread(x, links)


def of_a_file_of_arrays() -> None:
    device = torch.device("cuda:0")
    x, scale = torch.from_numpy(torch.ones(3).numpy()), torch.from_numpy(torch.ones(3).numpy())
    x = x.to(device)
    x * scale


@pytest.mark.parametrize(
    ("program", "moved", "edit"),
    [
        (of_a_memory, ".to(device)", "rewards = rewards.to(device)"),
        (of_a_graph, "x = x.to(device)", "links = links.to(device)"),
        (of_a_file_of_arrays, "x = x.to(device)", "scale = scale.to(device)"),
    ],
)
def test_the_line_that_moved_its_neighbour_left_it_behind(program: Callable[[], None], moved: str, edit: str) -> None:
    error = explained(program)
    assert_tells(error, moved=Text(ends=moved), edits=[edit])


def scaled(x: Tensor) -> Tensor:
    x = x.to("cuda:0")
    scale = torch.from_numpy(torch.ones(3).numpy())
    return x * scale


def test_a_line_above_its_birth_left_nothing_behind() -> None:
    error = explained(lambda: scaled(torch.ones(3)))
    assert culprit_of(error).moved is None, error.message


def test_what_a_line_below_gives_a_later_round_comes_before_what_is_made_of_it() -> None:
    def rounds() -> None:
        x, bias = torch.ones(3, device="cuda:0"), torch.zeros(3)
        for _ in range(3):
            y = bias + 1
            bias = y * 2
        x * y

    error = explained(rounds)
    assert culprit_of(error).name == "y"
