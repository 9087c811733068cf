"""A module keeps the device that it was made on in an attribute, and then it is moved: the attribute is not."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from devtrace.diagnosis.findings import Finding
from failing import both, error_of


class Kept(nn.Module):
    """Remembers where it was made."""

    def __init__(self, device: str = "cpu") -> None:
        super().__init__()
        self.body = nn.Linear(4, 4, device=device)
        self.device = torch.device(device)


class Noisy(Kept):
    def forward(self, x: Tensor) -> Any:
        noise = torch.randn(x.shape, device=self.device)
        return self.body(x) + noise


class Acting(Kept):
    def forward(self, seen: list[float]) -> Any:
        state = torch.as_tensor(seen).to(self.device)
        return self.body(state)


class Masking(Kept):
    def forward(self, x: Tensor) -> Any:
        mask = torch.tensor([True, False, True, False]).to(device=self.device)
        return self.body(x).masked_fill(mask, 0.0)


class Moving(Kept):
    def forward(self, x: Tensor) -> Any:
        x = x.to(self.device)
        return self.body(x)


class Asked(Kept):
    @property
    def where(self) -> torch.device:
        return self.device

    def forward(self, x: Tensor) -> Any:
        steps = torch.arange(4.0, device=self.where)
        return self.body(x) * steps


def noise() -> None:
    Noisy().to("cuda:0")(torch.ones(2, 4, device="cuda:0"))


def acting() -> None:
    Acting().cuda()([0.1, 0.2, 0.3, 0.4])


def masking() -> None:
    Masking().cuda()(torch.ones(2, 4).cuda())


def moving() -> None:
    Moving().cuda()(torch.ones(2, 4).cuda())


def asked() -> None:
    Asked().cuda()(torch.ones(2, 4).cuda())


def copied() -> None:
    copy.deepcopy(Noisy("cuda:0")).to("cuda:1")(torch.ones(2, 4, device="cuda:1"))


CASES = [
    (noise, "self.device", "noise = torch.randn(x.shape, device=x.device)"),
    (acting, "self.device", "state = torch.as_tensor(seen).to(next(self.parameters()).device)"),
    (masking, "self.device", "mask = torch.tensor([True, False, True, False]).to(device=x.device)"),
    (asked, "self.where", "steps = torch.arange(4.0, device=x.device)"),
    (copied, "self.device", "noise = torch.randn(x.shape, device=x.device)"),
]


@pytest.mark.parametrize(("program", "name", "after"), CASES, ids=[each[0].__name__ for each in CASES])
@both
def test_an_attribute_that_no_move_changed_is_named_and_the_line_takes_another_device(
    program: Callable[[], None], name: str, after: str, found: Callable[[Callable[[], None]], Finding]
) -> None:
    finding = found(program)
    odd, expected = ("cuda:0", "cuda:1") if program is copied else ("cpu", "cuda:0")
    words = f"`{name}` names {odd}, but the parameters of its module are on {expected}; a move of the module"
    assert (finding.cause, words in finding.message) == ("wrong-device", True), finding.message
    assert [edit.after.strip() for edit in finding.edits] == [after]


def test_what_such_a_line_moved_away_is_left_where_it_was() -> None:
    finding = error_of(moving)
    assert "`self.device` names cpu" in finding.message
    assert finding.edits
    assert "self.device" not in finding.edits[0].after


def test_a_move_behind_a_factory_is_what_asks_for_a_device() -> None:
    """Else `device=` would come before a move that takes the tensor back."""
    (edit,) = error_of(acting).edits
    assert edit.after.count("device") == edit.before.count("device")
