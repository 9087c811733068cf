"""Parts of programs with an unusual mismatch, which are recorded in some tests and only explained in others."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


class Lent:
    """A table that is on the device within a `with` block."""

    def __init__(self) -> None:
        self.rows = torch.rand(4)

    def __enter__(self) -> Lent:
        self.rows = self.rows.to("cuda:0")
        return self

    def __exit__(self, *_: object) -> None:
        self.rows = self.rows.cpu()


DEFAULT = torch.device("cuda:0")


class Painted:
    """An image that is on a device which its class chose."""

    def __init__(self) -> None:
        self.image = torch.rand(2, 4).to(DEFAULT)


class Halved(torch.autograd.Function):
    """A function whose backward brings its second gradient to the CPU, and the first one on the way."""

    @staticmethod
    def forward(context: Any, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return x * scale

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        seen = gradient.cpu().mean()
        back = gradient.cpu() / 2
        return gradient / 2 + seen.item(), back


class Scaled(nn.Module):
    """A module with a table that nothing registers."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.table = torch.arange(3.0)

    def forward(self, x: torch.Tensor) -> Any:
        return self.layer(x) * self.table
