"""State of an optimizer that is elsewhere: named as the optimizer's, and no line is blamed that has not left it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from devtrace.diagnosis.findings import Finding
from failing import edits_of, error_of, explained


def trained(device: str, kind: Callable[..., torch.optim.Optimizer]) -> tuple[nn.Module, torch.optim.Optimizer]:
    model = nn.Linear(3, 2).to(device)
    optimizer = kind(model.parameters(), lr=0.1)
    train(model, optimizer, device)
    return model, optimizer


def train(model: nn.Module, optimizer: torch.optim.Optimizer, device: str) -> None:
    optimizer.zero_grad()
    model(torch.ones(1, 3, device=device)).sum().backward()
    optimizer.step()


def state_sent_away() -> None:
    model, optimizer = trained("cuda:0", torch.optim.RMSprop)
    for state in optimizer.state.values():
        for key, value in state.items():
            if key != "step":
                state[key] = value.to("cpu")
    train(model, optimizer, "cuda:0")


def one_of_two_sent_away() -> None:
    model, optimizer = trained("cuda:0", torch.optim.Adam)
    for state in optimizer.state.values():
        state["exp_avg"] = state["exp_avg"].cpu()
    train(model, optimizer, "cuda:0")


@pytest.mark.parametrize("program", [state_sent_away, one_of_two_sent_away])
def test_of_a_state_that_a_line_sent_away_that_line_is_named(program: Callable[[], object]) -> None:
    finding = error_of(program)
    assert finding.cause == "wrong-device"
    assert edits_of(finding)


@pytest.mark.parametrize("program", [state_sent_away, one_of_two_sent_away])
def test_unrecorded_no_move_is_blamed_that_may_have_come_before_the_state(program: Callable[[], object]) -> None:
    assert "left this tensor behind" not in explained(program).message


def state_saved_before_the_move() -> None:
    model, optimizer = trained("cpu", torch.optim.Adam)
    saved = optimizer.state_dict()
    model.to("cuda:0")
    train(model, optimizer, "cuda:0")
    del saved


@pytest.mark.parametrize("ask", [explained, error_of])
def test_a_dictionary_that_shares_the_state_does_not_name_it_nor_move_it(
    ask: Callable[[Callable[[], object]], Finding],
) -> None:
    finding = ask(state_saved_before_the_move)
    assert finding.message.startswith('`optimizer.state[model.weight]["exp_avg"]`')
    assert "saved" not in f"{finding.message} {finding.help} {edits_of(finding)}"
