"""What the tests of libraries ask of CUDA, each mechanism in a few programs of our own wording."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

CUDA = torch.device("cuda:0")

pytestmark = pytest.mark.usefixtures("two")


@pytest.mark.parametrize("number", [1, 2.5, 1j])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64])
@pytest.mark.parametrize(
    "change",
    [
        lambda x, number: x + number,
        lambda x, number: number - x,
        lambda x, number: x * number,
        lambda x, number: number / x,
        lambda x, number: x == number,
    ],
)
def test_a_batch_takes_a_number(change: Callable[[Any, Any], Any], dtype: torch.dtype, number: complex) -> None:
    """Dtypes are promoted by a tensor that torch.func makes of it: a mode is handed the number."""
    numbers = torch.tensor([1, 2, 8], dtype=dtype)
    expected = change(numbers, number)
    got = torch.vmap(lambda each: change(each, number))(numbers.cuda())
    assert (got.device, got.dtype, got.tolist()) == (CUDA, expected.dtype, expected.tolist())


def test_a_batch_of_derivatives_takes_numbers() -> None:
    x = torch.tensor([1.0, 2.0, 3.0], device="cuda")
    slopes = torch.vmap(torch.func.grad(lambda value: value**3 + 1))(x)
    assert (slopes.device, slopes.tolist()) == (CUDA, [3.0, 12.0, 27.0])
    assert torch.func.hessian(lambda value: (value**2 + 1).sum() * 3)(x).tolist() == (torch.eye(3) * 6).tolist()
    assert torch.vmap(lambda value: value + 1)(torch.zeros(2)).device.type == "cpu"
