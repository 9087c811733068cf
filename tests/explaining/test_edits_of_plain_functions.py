"""What ran is read from the source where nobody recorded it.

What the lines of a frame did comes in their order: a line that moved some of what a call gave left the rest behind.
What a plain function made for a line that still runs is edited there.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from failing import Text, assert_tells, culprit_of, edits_of, explained


class Block(nn.Module):
    def __init__(self, size: int = 3) -> None:
        super().__init__()
        self.linear = nn.Linear(size, size)
        self.size = size

    def keep(self, rows: int) -> Tensor:
        pattern = torch.ones(rows, 1)
        pattern[::2] = 0.0
        return pattern

    @property
    def causal(self) -> Tensor:
        return torch.triu(torch.full((self.size, self.size), float("-inf")), 1)

    def begin(self, rows: int) -> tuple[Tensor, Tensor]:
        return torch.zeros(1, rows, self.size), torch.zeros(1, rows, self.size)


class Dropped(Block):
    def forward(self, x: Tensor) -> Tensor:
        keep = self.keep(x.shape[0])
        return x + keep * self.linear(x)  # type: ignore[no-any-return]


class Masked(Block):
    def forward(self, x: Tensor) -> Tensor:
        scores = self.linear(x)
        return scores + self.causal[: x.shape[0]]  # type: ignore[no-any-return]


class Recurrent(Block):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTM(3, 3, batch_first=True)

    def forward(self, x: Tensor, state: tuple[Tensor, Tensor]) -> Tensor:
        return self.cell(x, state)[0]  # type: ignore[no-any-return]


def dropped() -> None:
    Dropped().to("cuda:0")(torch.ones(3, 3, device="cuda:0"))


def masked() -> None:
    Masked().to("cuda:0")(torch.ones(3, 3, device="cuda:0"))


def recurrent() -> None:
    net = Recurrent().to("cuda:0")
    state = net.begin(2)
    net(torch.ones(2, 4, 3, device="cuda:0"), state)


@pytest.mark.parametrize(
    ("program", "made"), [(dropped, "torch.ones("), (masked, "torch.full("), (recurrent, "zeros(")]
)
def test_a_factory_in_a_plain_function_gets_the_device(program: Callable[[], None], made: str) -> None:
    (line,) = edits_of(explained(program))
    assert line.count("device=next(self.parameters()).device") == line.count(made) > 0


def chosen(first: Tensor, second: Tensor) -> Tensor:
    return first if first.sum() > second.sum() else second


def plain(n: int) -> Tensor:
    return torch.zeros(n)


def through_another() -> None:
    x = torch.ones(3, device="cuda:0")
    shift = chosen(plain(3), plain(3))
    x + shift


def bound_twice(often: bool = False) -> None:
    x = torch.ones(3, device="cuda:0")
    shift = torch.full((3,), 2.0)
    if not often:
        shift = plain(3)
    x + shift


@pytest.mark.parametrize("program", [through_another, bound_twice])
def test_where_another_line_may_have_made_it_no_guess_is_edited(program: Callable[[], None]) -> None:
    edits = explained(program).edits
    assert not any("torch.zeros" in edit.before or "torch.ones(n)" in edit.before for edit in edits)


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
