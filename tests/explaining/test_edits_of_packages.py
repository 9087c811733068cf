"""What an installed package keeps is moved where it is: below the call that made it, or below its constructor."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

from devtrace.diagnosis.findings import Finding
from devtrace.recording.context import hooks
from failing import both, edits_of

TURNING = """import torch
from torch import nn


class Turn(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = None

    def forward(self, x):
        if self.table is not None and self.table.shape == x.shape:
            return self.table
        rows = torch.linspace(0, 1, x.numel(), device=x.device)
        self.table = rows[None, :].reshape(x.shape)
        return self.table


class Turned(nn.Module):
    def __init__(self):
        super().__init__()
        self.turn = Turn()

    def forward(self, x):
        table = self.turn(x)
        return x + table


class Fades(nn.Module):
    def __init__(self):
        super().__init__()
        self.fade = None

    def forward(self, x):
        if self.fade is None:
            self.fade = torch.hann_window(x.size(-1))
        return x * self.fade


class Shifted(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.by = torch.ones(width)

    def forward(self, x):
        return x + self.by
"""


@pytest.fixture(autouse=True)
def turning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An installed package, and hooks that see its moves."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "turning.py").write_text(TURNING)
    monkeypatch.syspath_prepend(folder)
    hooks.install()
    yield
    hooks.uninstall()
    sys.modules.pop("turning", None)


class Net(nn.Module):
    def __init__(self, first: nn.Module) -> None:
        super().__init__()
        self.first, self.last = first, nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.last(self.first(x))
        return out


def a_layer_in_it_keeps_a_table() -> None:
    from turning import Turned  # type: ignore[import-not-found]

    net = Net(Turned())
    net(torch.zeros(2, 4))
    net.to("cuda:0")
    net(torch.ones(2, 4, device="cuda:0"))


def a_window_is_made_without_a_device() -> None:
    from turning import Fades

    net = Net(Fades())
    shape = net(torch.zeros(2, 4)).shape
    net.cuda()
    net(torch.ones(shape, device="cuda:0"))


def its_constructor_makes_it() -> None:
    from turning import Shifted

    shifted = Shifted(4)
    shifted.cuda()
    shifted(torch.ones(2, 4, device="cuda:0"))


@both
@pytest.mark.parametrize(
    ("program", "name", "move"),
    [
        (a_layer_in_it_keeps_a_table, "net.first.turn.table", 'net.to("cuda:0")'),
        (a_window_is_made_without_a_device, "net.first.fade", "net.cuda()"),
        (its_constructor_makes_it, "shifted.by", "shifted = Shifted(4)"),
    ],
)
def test_an_edit_is_below_the_line_from_which_on_the_tensor_is_there(
    found: Callable[..., Finding], program: Callable[[], None], name: str, move: str
) -> None:
    finding = found(program)
    assert [each.split(".to(")[0] for each in edits_of(finding)] == [f"{name} = {name}"]
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    assert lines[finding.edits[0].line - 1].strip() == move


@both
def test_a_call_is_put_below_the_move_only_if_what_it_makes_follows_its_input(found: Callable[..., Finding]) -> None:
    assert "only below" not in found(a_window_is_made_without_a_device).help
