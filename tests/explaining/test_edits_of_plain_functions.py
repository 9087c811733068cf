"""What a plain function made for a line that still runs is edited there, though nobody recorded that it ran."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from failing import edits_of, explained


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


def either(n: int) -> Tensor:
    kept = torch.zeros(n)
    if n > 5:
        kept = torch.ones(n)
    return kept


def chosen(first: Tensor, second: Tensor) -> Tensor:
    return first if first.sum() > second.sum() else second


def plain(n: int) -> Tensor:
    return torch.zeros(n)


def of_two_ways() -> None:
    x = torch.ones(3, device="cuda:0")
    shift = either(3)
    x + shift


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


@pytest.mark.parametrize("program", [of_two_ways, through_another, bound_twice])
def test_where_another_line_may_have_made_it_no_guess_is_edited(program: Callable[[], None]) -> None:
    edits = explained(program).edits
    assert not any("torch.zeros" in edit.before or "torch.ones(n)" in edit.before for edit in edits)
