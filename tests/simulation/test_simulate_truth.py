"""The simulator against real CUDA, question by question as an H100 answered it; and that the comparison can fail."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import cuda_truth
import numpy
import pytest
import torch
from torch import nn
from torch.nn import functional

import devtrace
import needs
from folders import TESTS

DATA = TESTS / "data"
TRUTH = json.loads((DATA / "cuda_truth.json").read_text())["answers"]
WORDS = json.loads((DATA / "cuda_words.json").read_text())["answers"]
ROWS = [line.split("\t") for line in (DATA / "cuda_differences.tsv").read_text().splitlines() if line[0] != "#"]
KNOWN = {name: int(count) for name, count, why in ROWS if why}

# One operator or two of each check; `make breadth` asks all.
SAMPLE = [
    "addcdiv",
    "addcmul",
    "cat",
    "complex",
    "gather",
    "index_fill",
    "index_put",
    "lerp",
    "linalg.matrix_rank",
    "logical_and",
    "mm",
    "mul",
    "mv",
    "nn.functional.rms_norm",
    "searchsorted",
    "take_along_dim",
]


def otherwise(answers: cuda_truth.Answers) -> tuple[dict[str, int], list[str]]:
    """Count answers that differ by operator, and those of operators that are not known to."""
    found = cuda_truth.differences(TRUTH, answers)
    return dict(Counter(line.split(" | ")[0] for line in found)), [
        line for line in found if line.split(" | ")[0] not in KNOWN
    ]


@pytest.fixture(scope="module")
def answers() -> cuda_truth.Answers:
    needs.imported("expecttest")
    return cuda_truth.survey(SAMPLE, simulate=True)


def test_the_simulator_answers_a_sample_of_operators_as_real_cuda_does(answers: cuda_truth.Answers) -> None:
    assert set(answers) == set(SAMPLE)
    assert otherwise(answers) == ({}, [])


@pytest.mark.breadth
def test_the_simulator_answers_as_real_cuda_does() -> None:
    needs.imported("expecttest")
    counts, unknown = otherwise(cuda_truth.survey((), simulate=True, at_once=2))
    assert unknown == []
    assert counts == {op: count for op, count in KNOWN.items() if op in TRUTH}


def test_a_comparison_finds_what_differs_and_only_that() -> None:
    seen = {
        "mm": {"float32[2] | 0": "legal -> cuda:0", "float32[3] | 0": "RuntimeError: no"},
        "add": {"q | 1": "legal -> cpu"},
    }
    assert cuda_truth.differences(cuda_truth.folded(seen), seen) == []
    answer = {
        "mm": {"float32[2] | 0": "RuntimeError: no", "float32[3] | 0": "RuntimeError: no", "float32[4] | 0": "unasked"},
        "unknown": {"q | 1": "legal -> cpu"},
    }
    assert cuda_truth.differences(cuda_truth.folded(answer), seen) == [
        "mm | float32[2] | 0: CUDA 'RuntimeError: no', simulated 'legal -> cuda:0'"
    ]


def test_answers_that_all_samples_share_are_written_once() -> None:
    asked = {"mm": {"a | 0": "no", "b | 0": "no", "a | 1": "no", "b | 1": "legal -> cpu"}}
    assert cuda_truth.folded(asked) == {"mm": {"0": "no", "1": {"no": ["a"], "legal -> cpu": ["b"]}}}


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


def test_the_questions_leave_each_tensor_behind_in_turn(answers: cuda_truth.Answers) -> None:
    assert all("is on cpu" in answer or "on cuda:0" in answer for answer in answers["mm"].values())
    assert any(answer == "legal -> cuda:0" for answer in answers["mul"].values())  # a 0-dimensional host tensor
    assert any("cuda:0 and cpu!" in answer for answer in answers["mul"].values())


@needs.torch_of((2, 11))  # the H100's; 2.10 has other words
@pytest.mark.filterwarnings("ignore")
def test_mistakes_are_refused_in_cudas_words() -> None:
    with devtrace.simulate("cuda:2"):
        answers = {call: words_of(call) for call in WORDS}
    found = {call: (WORDS[call], answers[call]) for call in WORDS if not cuda_truth.agree(WORDS[call], answers[call])}
    assert {call: both for call, both in found.items() if call not in KNOWN} == {}
    assert [call for call in KNOWN if call in WORDS and call not in found] == []


def words_of(call: str) -> str:
    try:
        value = eval(call, names())
    except Exception as error:  # noqa: BLE001 (the exception is the answer)
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"[:400]
    return "legal " + (f"{value.device} {value.dtype}" if isinstance(value, torch.Tensor) else type(value).__name__)


def names() -> dict[str, Any]:
    """Return what the calls use: `x` makes tensors of the device, `h` of the host, the modules are on the host."""
    return {
        "__name__": __name__, "torch": torch, "nn": nn, "F": functional, "numpy": numpy, "h": torch.ones,
        "x": lambda *shape: torch.ones(*shape, device="cuda:0"),
        "lin": nn.Linear(4, 4), "conv": nn.Conv2d(3, 4, 3), "bn": nn.BatchNorm1d(4), "emb": nn.Embedding(5, 4),
        "gru": nn.GRU(4, 4), "lstm": nn.LSTM(4, 4), "mha": nn.MultiheadAttention(4, 2), "ln": nn.LayerNorm(4),
    }  # fmt: skip


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine can answer")
def test_without_cuda_one_sentence_names_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    assert cuda_truth.main([]) == 2
    assert capsys.readouterr().err.startswith("truth: got a machine without CUDA;")
