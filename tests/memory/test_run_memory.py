"""Memory through each door: `devtrace run`, a cell, a marked test; with a limit and without."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from shells import Shell, new_shell
from warm import JOB, Warm

pytestmark = pytest.mark.slow

SCORES = """
import torch
from torch import nn

class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.wide = nn.Linear(128, 1024)
        self.narrow = nn.Linear(1024, 1)
    def forward(self, rows):
        return self.narrow(torch.tanh(self.wide(rows)))

scorer = Scorer().to("cuda")
optimizer = torch.optim.SGD(scorer.parameters(), lr=0.1, momentum=0.9)
for epoch in range(3):
    rows = torch.randn(1024, 128, device="cuda")
    optimizer.zero_grad()
    scorer(rows).square().mean().backward()
    optimizer.step()
print("scored")
"""
CAUTIOUS = """
import torch
size = 1 << 24
while True:
    try:
        kept = torch.zeros(size, device="cuda")
        break
    except torch.OutOfMemoryError:
        size //= 2
print(size)
"""


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in JOB:
        monkeypatch.delenv(name, raising=False)


def run(warm: Warm, folder: Path, program: str, *flags: str) -> tuple[int, str, str]:
    (folder / "program.py").write_text(program)
    got = warm.devtrace(folder, "run", *flags, "program.py")
    return got.returncode, got.stdout, got.stderr


def test_run_memory_prints_the_owners_at_the_peak(warm: Warm, tmp_path: Path) -> None:
    code, out, err = run(warm, tmp_path, SCORES, "--simulate", "cuda:1", "--memory")
    assert (code, out) == (0, "scored\n")
    assert "cuda:0 held at most" in err
    assert "the parameters of `scorer`" in err
    assert "the gradients of `scorer`" in err
    assert "the optimizer state in `optimizer`" in err
    assert "what `scorer` keeps for backward" in err


def test_run_with_a_limit_shows_how_near_the_program_came(warm: Warm, tmp_path: Path) -> None:
    code, out, err = run(warm, tmp_path, SCORES, "--simulate", "cuda:1,64MB")
    assert (code, out) == (0, "scored\n")
    assert "of 64.0 MiB, at program.py line " in err
    assert "activations of `scorer`" in err.replace("\n", " ")


def test_a_program_that_does_not_fit_ends_as_on_a_device_with_what_is_alive(warm: Warm, tmp_path: Path) -> None:
    code, out, err = run(warm, tmp_path, SCORES, "--simulate", "cuda:1,6MB")
    assert (code, out) == (1, "")
    assert "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate" in err
    assert "cuda:0 ran out of memory" in err
    assert "of 6.0 MiB are held" in err.replace("\n", " ")


def test_an_error_that_the_program_caught_is_a_note(warm: Warm, tmp_path: Path) -> None:
    code, out, err = run(warm, tmp_path, CAUTIOUS, "--simulate", "cuda:1,24MB")
    assert (code, out) == (0, f"{1 << 22}\n")
    assert "cuda:0 ran out of memory 2 times; the program caught the error and went on." in err


@pytest.fixture
def shell() -> Iterator[Shell]:
    with new_shell("%load_ext devtrace", "import torch") as made:
        yield made


def test_a_cell_has_a_limit_by_its_own_line_or_by_the_sessions(shell: Shell) -> None:
    own = shell.run("%%devtrace --simulate cuda:1,32MB", "big = torch.zeros(16 << 20, device='cuda')")
    assert isinstance(own.error, torch.OutOfMemoryError)
    shell.run("%devtrace simulate cuda:1,32MB")
    ran = shell.run("%%devtrace --memory", "small = torch.zeros(1 << 20, device='cuda')\nsmall.add_(1)")
    assert ran.error is None
    assert "cuda:0 held at most 4.0 MiB of 32.0 MiB" in str(shell.traced[-1].report)
    assert isinstance(shell.run("torch.zeros(16 << 20, device='cuda')").error, torch.OutOfMemoryError)
    shell.run("%devtrace simulate off")
