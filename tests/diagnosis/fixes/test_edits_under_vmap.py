"""What vmap or grad runs has wrappers of tensors: an edit asks one for its device as it asks any other tensor."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.func import grad, vmap

from devtrace.diagnosis.findings import Finding
from failing import edits_of, error_of, explained


def ridge(x: Tensor) -> Tensor:
    identity = torch.eye(2)
    return x.T @ x + identity


def loss_of(x: Tensor, y: Tensor) -> Tensor:
    weights = torch.ones(3)
    return ((x * weights).sum() - y) ** 2


def shifted(x: Tensor) -> Tensor:
    shift = torch.arange(3)
    return x + shift


def one() -> None:
    vmap(ridge)(torch.ones(4, 3, 2).to("cuda:0"))


def of_gradients() -> None:
    vmap(grad(loss_of))(torch.ones(2, 3).to("cuda:0"), torch.zeros(2).to("cuda:0"))


def of_two_axes() -> None:
    vmap(vmap(shifted))(torch.ones(2, 2, 3).to("cuda:0"))


@pytest.mark.parametrize("found", [error_of, explained])
@pytest.mark.parametrize(
    ("program", "edit"),
    [
        (one, "identity = torch.eye(2, device=x.device)"),
        (of_gradients, "weights = torch.ones(3, device=x.device)"),
        (of_two_axes, "shift = torch.arange(3, device=x.device)"),
    ],
)
def test_a_factory_is_given_the_device_of_an_argument(
    found: Callable[[Callable[[], None]], Finding], program: Callable[[], None], edit: str
) -> None:
    assert edits_of(found(program)) == [edit]
