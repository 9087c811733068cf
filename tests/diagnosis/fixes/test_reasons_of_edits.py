"""An edit that stands apart from its finding: the words of the fix say why it is there."""

from __future__ import annotations

import re

import pytest
import torch
from torch import nn

from devtrace.words import language
from failing import Text, culprit_of, edits_of, fails, report_of


def weigh() -> None:
    gpu = torch.device("cuda:0")
    tagger = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 3)).to(gpu)
    judge = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 5.0, 1.0]))
    for words, tags in [(torch.tensor([1, 2, 8]), torch.tensor([0, 2, 1]))]:
        words = words.to(gpu)
        judge(tagger(words), tags)


def test_an_edit_of_another_input_of_the_failing_op_has_its_reason() -> None:
    (error,) = (each for each in report_of(weigh).findings if each.severity == "error")
    assert edits_of(error) == ["tags = tags.to(gpu)", "judge.to(gpu)"]
    assert error.help == (
        "move it as its neighbours: `tags = tags.to(gpu)`. "
        "`judge.weight` is on cpu too; add `judge.to(gpu)` below line 18"
    )


def smooth() -> None:
    gpu = "cuda:0"
    floor = torch.full((3,), 0.5)
    heights = torch.tensor([3.0, 1.0, 2.0])
    above = (heights - floor).clamp(min=0)
    lens = nn.Linear(3, 3).to(gpu)
    lens(heights)
    print(above)


def test_an_edit_that_another_edit_makes_necessary_names_the_line_that_needs_it() -> None:
    (error,) = (each for each in report_of(smooth).findings if each.severity == "error")
    assert culprit_of(error).name == "heights"
    assert re.search(r"`floor` is used with it at .*line 37 and is on cpu too; ", error.help)
    assert [line.partition(" =")[0] for line in edits_of(error)] == ["heights", "floor"]


def blend() -> None:
    left, right = torch.ones(4, device="cuda:0"), torch.arange(4.0)
    share = torch.tensor([0.1, 0.2, 0.3, 0.4])
    left + right * 2 + share


def test_the_rest_of_a_line_has_its_reason_in_chinese_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language.CHOICE, "user", "zh")
    (error,) = (each for each in report_of(blend).findings if each.severity == "error")
    assert "。`share` 也在 cpu 上；" in error.help


@fails(help=Text(lacks=(". ",)))
def test_a_fix_of_one_edit_has_no_reason_beside_it() -> None:
    torch.ones(3, device="cuda:0") + torch.ones(3)
