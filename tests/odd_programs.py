"""Parts of programs with an unusual mismatch, which are recorded in some tests and only explained in others."""

from __future__ import annotations

import torch


class Lent:
    """A table that is on the device within a `with` block."""

    def __init__(self) -> None:
        self.rows = torch.rand(4)

    def __enter__(self) -> Lent:
        self.rows = self.rows.to("cuda:0")
        return self

    def __exit__(self, *_: object) -> None:
        self.rows = self.rows.cpu()
