"""Torch says each sentence of the table, and what it refuses is told from its words."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F  # noqa: N812 (as the examples of the table name it)

from devtrace.dtypes.sentences import Sentence, dtype_error, sentences
from devtrace.runtime.requirements import release_of


@pytest.mark.parametrize("row", [each for each in sentences() if each.example], ids=lambda each: each.example)
def test_each_sentence_is_the_installed_torchs(row: Sentence) -> None:
    f, fb = torch.rand(4, 4), torch.rand(4)
    names = {"f": f, "h": f.half(), "d": f.double(), "b": f > 0.5, "fb": fb, "hb": fb.half(), "i": torch.arange(4)}
    with pytest.raises((RuntimeError, TypeError, ValueError, IndexError, AssertionError)) as raised:
        eval(row.example, {"torch": torch, "F": F, **names})
    message = str(raised.value)
    assert row.pattern.search(message) or release_of(torch.__version__) < (2, 13)  # older: another row's
    found = dtype_error(message)
    assert found is not None
    assert found.refused == row.refused


@pytest.mark.parametrize(
    "text",
    [
        "Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) should be the same",
        "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!",
        "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)",
    ],
)
def test_other_errors_are_not_of_dtypes(text: str) -> None:
    assert dtype_error(text) is None


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("expected mat1 and mat2 to have the same dtype, but got: float != c10::Half", ("float32", "float16")),
        (
            "Input type (torch.cuda.FloatTensor) and weight type (torch.cuda.HalfTensor) should be the same",
            ("float32", "float16"),
        ),
        ("Found dtype Double but expected Float", ("float64", "float32")),
        ("input must have the type torch.float32, got type torch.float64", ("float32", "float64")),
    ],
)
def test_dtypes_are_read_by_any_of_their_names(text: str, named: tuple[str, ...]) -> None:
    found = dtype_error(text)
    assert found is not None
    assert found.named == named
