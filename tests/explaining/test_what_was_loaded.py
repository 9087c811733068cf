"""What torch loaded from a file was made by the line that loaded it, whatever else of that name the program writes."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from failing import birth_of, culprit_of, explained


def saved() -> io.BytesIO:
    file = io.BytesIO()
    torch.save({"net": nn.Linear(3, 1).state_dict(), "scaler": {"mean": torch.zeros(3), "scale": torch.ones(3)}}, file)
    file.seek(0)
    return file


class Predictor:
    def __init__(self, file: io.BytesIO) -> None:
        checkpoint = torch.load(file, map_location="cpu")
        self.scaler = checkpoint["scaler"]

    def __call__(self, x: Tensor) -> Tensor:
        return x - self.scaler["mean"]  # type: ignore[no-any-return]


def of_a_checkpoint() -> None:
    Predictor(saved())(torch.ones(2, 3, device="cuda:0"))


def read(file: io.BytesIO) -> dict[str, Tensor]:
    bundle = torch.load(file, weights_only=True)
    return bundle["scaler"]  # type: ignore[no-any-return]


def of_a_function() -> None:
    scaler = read(saved())
    x = torch.ones(2, 3, device="cuda:0")
    x * scaler["scale"]


def of_a_variable() -> None:
    stored = torch.load(saved(), weights_only=True)
    torch.ones(2, 3, device="cuda:0") - stored["scaler"]["mean"]


@pytest.mark.parametrize(
    ("program", "line"),
    [
        (of_a_checkpoint, 'checkpoint = torch.load(file, map_location="cpu")'),
        (of_a_function, "bundle = torch.load(file, weights_only=True)"),
        (of_a_variable, "stored = torch.load(saved(), weights_only=True)"),
    ],
)
def test_a_tensor_that_was_loaded_was_made_by_that_line(program: Callable[[], None], line: str) -> None:
    error = explained(program)
    assert culprit_of(error).born is not None, error.message
    assert birth_of(error).text == line
    assert not any("torch.zeros" in name for name in culprit_of(error).names)
