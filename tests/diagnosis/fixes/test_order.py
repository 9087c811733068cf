"""Why this edit and not that: the order of the strategies, and what became of each candidate of a program."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import pytest
import torch
from torch import nn

import devtrace
from devtrace.diagnosis.fixes.order import EVERY, FOR_EVERY_CAUSE, ORDER, of_cause
from devtrace.diagnosis.fixes.search import Search
from devtrace.diagnosis.slugs import CauseSlug


def judged(program: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return each candidate for a program in the order tried, with what became of it."""
    lines: list[str] = []
    fix = Search.fix

    def noted(search: Search) -> object:
        for whole, each, why in search.judged():
            lines.append(f"{each.ranked.strategy.__name__}: {why or 'proven'}")
            if whole is not None:
                break
        return fix(search)

    monkeypatch.setattr(Search, "fix", noted)
    with pytest.raises(RuntimeError), devtrace.record(simulate="cuda:2"):
        program()
    assert lines
    return lines


def a_head_after_the_move() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2)).to("cuda:0")
    model[1] = nn.Linear(4, 3)
    model(torch.ones(2, 4, device="cuda:0"))


def a_table_below_its_update() -> None:
    table = {"mean": torch.zeros(3)}
    x = torch.ones(3, device="cuda:0")
    for _ in range(2):
        table["mean"] = table["mean"] * 0.9 + x * 0.1


def weights_of_a_loss() -> None:
    model = nn.Linear(3, 3).to("cuda:0")
    weights = torch.ones(3)
    for _ in range(2):
        model(torch.ones(2, 3, device="cuda:0")) * weights


@pytest.mark.parametrize(
    ("program", "tried"),
    [
        (a_head_after_the_move, ["move_below_attachment: proven"]),
        (
            a_table_below_its_update,
            ["move_below_binding: a later line sets it anew", "pass_device_to_factory: proven"],
        ),
        (weights_of_a_loss, ["move_where_made: proven"]),
    ],
)
def test_the_first_candidate_that_is_proven_is_taken(
    program: Callable[[], object], tried: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert judged(program, monkeypatch) == tried


@pytest.mark.parametrize("cause", get_args(CauseSlug))
@pytest.mark.parametrize("trait", ["device", "dtype"])
def test_no_strategy_is_tried_twice_for_a_cause_and_those_for_every_cause_come_last(
    cause: CauseSlug, trait: str
) -> None:
    own = [ranked.strategy for ranked in of_cause(cause, trait)]
    every = [ranked.strategy for ranked in FOR_EVERY_CAUSE]
    assert len({*own, *every}) == len(own) + len(every)
    assert [ranked.causes == EVERY for ranked in ORDER] == [False] * (len(ORDER) - len(every)) + [True] * len(every)


def test_each_rank_has_its_reason() -> None:
    assert len({ranked.why for ranked in ORDER}) == len(ORDER)
