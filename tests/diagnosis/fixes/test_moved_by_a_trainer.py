"""A trainer that is built moves the model: below that line an edit may ask the model for its device, above it not."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

from failing import report_of

LOOPS = """class Loop:
    def __init__(self, model, extra=None):
        self.model = model
        self.model.to("cuda:0")
        self.extra = extra

    def run(self, rounds):
        for _ in range(rounds):
            self.step()
"""


@pytest.fixture(autouse=True)
def loops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "loops.py").write_text(LOOPS)
    monkeypatch.syspath_prepend(folder)
    yield
    sys.modules.pop("loops", None)


class Rarity:
    def __init__(self, counts: torch.Tensor) -> None:
        self.weights = 1 / (counts + 1)

    def __call__(self) -> torch.Tensor:
        return self.weights


def weights_of_classes() -> None:
    from loops import Loop  # type: ignore[import-not-found]

    class Weighted(Loop):  # type: ignore[misc]
        def __init__(self, *args: object, rarity: Rarity) -> None:
            super().__init__(*args)
            self.rarity = rarity

        def step(self) -> None:
            scores = self.model(torch.rand(4, 3).to(self.model.weight.device))
            target = torch.tensor([0, 1, 1, 0]).to(scores.device)
            nn.functional.cross_entropy(scores, target, weight=self.rarity()).backward()

    net = nn.Linear(3, 2)
    rarity = Rarity(torch.tensor([3.0, 1.0]))
    loop = Weighted(net, rarity=rarity)
    loop.run(3)


def a_penalty_of_a_runner() -> None:
    from loops import Loop

    class Penalised(Loop):  # type: ignore[misc]
        def __init__(self, model: nn.Module, floor: Rarity) -> None:
            super().__init__(model)
            self.floor = floor

        def step(self) -> None:
            out = self.model(torch.rand(2, 3, device="cuda:0"))
            (out - self.floor()).square().sum().backward()

    def start(body: nn.Module) -> None:
        floor = Rarity(torch.zeros(2))
        runner = Penalised(body, floor)
        runner.run(2)

    start(nn.Sequential(nn.Linear(3, 2), nn.ReLU()))


@pytest.mark.parametrize("program", [weights_of_classes, a_penalty_of_a_runner])
def test_what_stayed_moves_once_below_the_line_that_builds_the_trainer(program: Callable[[], None]) -> None:
    (finding,) = (each for each in report_of(program, simulate="cuda:1").findings if each.severity == "error")
    text, first = inspect.getsourcelines(program)
    built = next(at for at, line in enumerate(text, first) if "= Weighted(" in line or "= Penalised(" in line)
    (edit,) = finding.edits
    assert (edit.line, edit.before) == (built, ""), finding.help
    assert ".parameters()).device)" in edit.after
