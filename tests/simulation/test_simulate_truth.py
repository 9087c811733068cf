"""The simulator against real CUDA, row by row, where somebody has asked a GPU; and that the comparison can fail."""

from __future__ import annotations

import json

import cuda_truth
import pytest
import torch

import needs
from folders import TESTS

FILE = TESTS / "data" / "cuda_truth.json"


@pytest.mark.slow
@pytest.mark.skipif(not FILE.exists(), reason="nobody has run `python tools/cuda_truth.py` on a GPU yet")
def test_the_simulator_answers_as_real_cuda_does() -> None:
    needs.imported("expecttest")
    answer = json.loads(FILE.read_text())["answers"]
    assert cuda_truth.differences(answer, cuda_truth.survey((), simulate=True)) == []


def test_a_comparison_finds_what_differs_and_only_that() -> None:
    seen = {
        "mm": {"float32[2] | 0": "legal -> cuda:0", "float32[3] | 0": "RuntimeError: no"},
        "add": {"q": "legal -> cpu"},
    }
    assert cuda_truth.differences(seen, seen) == []
    answer = {
        "mm": {"float32[2] | 0": "RuntimeError: no", "float32[3] | 0": "RuntimeError: no", "float32[4] | 0": "unasked"},
        "unknown": {"q": "legal -> cpu"},
    }
    assert cuda_truth.differences(answer, seen) == [
        "mm | float32[2] | 0: CUDA 'RuntimeError: no', simulated 'legal -> cuda:0'"
    ]


@pytest.mark.parametrize(
    ("one", "other", "agreed"),
    [
        (
            "RuntimeError: got mat2 is on cpu (when checking argument in method a)",
            "RuntimeError: got mat2 is on cpu",
            True,
        ),
        ("RuntimeError: got mat2 is on cpu", "RuntimeError: got mat1 is on cpu", False),
        ("RuntimeError: no", "TypeError: no", False),
        ("legal -> cuda:0", "legal -> cpu", False),
    ],
)
def test_words_are_compared_up_to_the_names_of_functions(one: str, other: str, agreed: bool) -> None:
    assert cuda_truth.agree(one, other) is agreed


def test_the_questions_leave_each_tensor_behind_in_turn() -> None:
    needs.imported("expecttest")
    answers = cuda_truth.survey(["mm", "mul"], simulate=True)
    assert set(answers) == {"mm", "mul"}
    assert all("is on cpu" in answer or "on cuda:0" in answer for answer in answers["mm"].values())
    assert any(answer == "legal -> cuda:0" for answer in answers["mul"].values())  # a 0-dimensional host tensor
    assert any("cuda:0 and cpu!" in answer for answer in answers["mul"].values())


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine can answer")
def test_without_cuda_one_sentence_names_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    assert cuda_truth.main([]) == 2
    assert capsys.readouterr().err.startswith("truth: got a machine without CUDA;")
