"""What a passing value was made of, which lines are said to have moved a copy, and how many lines a fix takes."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from failing import BOTH, Text, fails


class Schedule:
    def __init__(self) -> None:
        self.alphas = torch.linspace(1, 0.1, 10)

    def noisy(self, x: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        share = self.alphas[steps].view(-1, 1)
        return share * x


def sample(device: str) -> torch.Tensor:
    schedule = Schedule()
    return schedule.noisy(torch.rand(16, 4, device=device), torch.randint(0, 10, (16,)))


@fails(*BOTH, name="schedule.alphas", edits=["schedule.alphas = schedule.alphas.to(device)"])
def test_what_an_index_picked_was_made_of_the_table_however_many_indexes_there_are() -> None:
    sample("cuda:0")


def is_right(scores: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return scores.argmax(1) == target


def evaluated(device: str) -> torch.Tensor:
    net = nn.Linear(5, 4).to(device)
    x, y = torch.rand(6, 5), torch.randint(0, 4, (6,))
    scores = net(x.to(device))
    nn.functional.cross_entropy(scores, y.to(device)).backward()
    return is_right(scores, y)


@fails(message=Text("uses a copy of it on cuda:0; the tensor itself stayed on cpu."))
def test_a_tensor_of_which_a_line_used_a_moved_copy_is_no_copy_itself() -> None:
    evaluated("cuda:0")


def counting_loss(classes: int) -> Callable[[torch.Tensor], torch.Tensor]:
    counts = torch.ones(classes)

    def loss(labels: torch.Tensor) -> torch.Tensor:
        return counts + torch.bincount(labels, minlength=3)

    return loss


@fails(moved=None, message=Text("Nothing moved it to cuda:0."))
def test_an_argument_that_was_moved_left_nothing_of_a_closure_behind() -> None:
    criterion = counting_loss(3)
    labels = torch.randint(0, 3, (6,)).to("cuda:0")
    criterion(labels)


def uniform(count: int) -> torch.Tensor:
    return torch.ones(count) / count


def transported(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    mu, nu = uniform(len(a)), uniform(len(b))
    u, v = torch.zeros_like(mu), torch.zeros_like(nu)
    for _ in range(2):
        u = mu.log() - (torch.cdist(a, b) + v).logsumexp(1)
        v = nu.log() - (torch.cdist(a, b) + u[:, None]).logsumexp(0)
    return v


@fails(*BOTH, edits=["mu, nu = uniform(len(a)).to(a.device), uniform(len(b)).to(b.device)"])
def test_values_that_one_line_makes_alike_are_moved_there_and_what_is_made_of_them_follows() -> None:
    transported(torch.rand(4, 3, device="cuda:0"), torch.rand(5, 3, device="cuda:0"))
