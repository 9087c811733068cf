"""How large a batch fits is said where it was run, with one that does not; where it cannot be known, nothing is."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent

import pytest

from devtrace.fixing.batches import Batches
from devtrace.fixing.notebooks.process import NotebookFix, wait_for
from devtrace.fixing.rounds import Rounds
from devtrace.runtime.size_limits import parted
from fix_rounds import Program, fixed, outcome
from warm import Warm

pytestmark = [pytest.mark.slow, pytest.mark.one_in(4)]
SIMULATE = "cuda:1,48MB"
HEAD = "import argparse\nfrom dataclasses import dataclass\nimport torch\nfrom torch import nn\n"
STEP = """
def step(net, size, device):
    net(torch.randn(size, 64, device=device)).square().mean().backward()

def build(device):
    return nn.Sequential(nn.Linear(64, 1024), nn.Tanh(), nn.Linear(1024, 1024), nn.Tanh()).to(device)
"""
FITS = {
    "constant": """
        BATCH_SIZE = 4000

        def run(device):
            net = build(device)
            for _ in range(2):
                step(net, BATCH_SIZE, device)
    """,
    "flag": """
        def run(device):
            parser = argparse.ArgumentParser()
            parser.add_argument("-b", "--batch-size", type=int, default=3000)
            options, _ = parser.parse_known_args([])
            step(build(device), options.batch_size, device)
    """,
    "field": """
        @dataclass
        class Config:
            width: int = 1024
            batch: int = 5000
            eval_batch: int = 16

        def run(device):
            step(build(device), Config().batch, device)
    """,
}
SILENT = {
    "two sizes": """
        def run(device, batch_size=4000):
            step(build(device), batch_size, device)
            loaded = dict(batch_size=16)
            step(build(device), loaded["batch_size"], device)
    """,
    "no smaller one fits": """
        BATCH = 64

        def run(device):
            net = nn.Sequential(*[build(device) for _ in range(20)])
            step(net[0], BATCH, device)
    """,
    "another error": """
        def run(device):
            options = {"batch_size": 4000, "rows": 4000}
            x = torch.randn(options["batch_size"], 64, device=device)
            build(device)(x.view(options["rows"], 64)).sum().backward()
    """,
    "it is the number of something else": """
        BATCH = 32

        def run(device):
            for at in range(BATCH):
                step(build(device), 4000, device)
    """,
}


def left(warm: Warm, path: Path, text: str) -> tuple[Rounds, list[int]]:
    path.write_text(HEAD + STEP + dedent(text))
    rounds, _ = fixed(warm, Program(path, ("cuda:0",), SIMULATE))
    asked: list[int] = []
    Batches(rounds, parted(SIMULATE)[1] or 0, asked.append).go()
    return rounds, asked


@pytest.mark.parametrize("name", FITS)
def test_the_batch_that_fits_by_the_report_does_and_the_other_does_not(warm: Warm, tmp_path: Path, name: str) -> None:
    path = tmp_path / "train.py"
    rounds, asked = left(warm, path, FITS[name])
    found = re.fullmatch(
        r"a batch of (\d+) fits \((\d+)\.\d MiB of 48\.0 MiB\), (\d+) does not: .*train\.py line \d+", rounds.why_left
    )
    assert found is not None
    fits, peak, beyond = map(int, found.groups())
    assert 20 < peak <= 48
    (size,) = re.findall(r"\b[345]000\b", FITS[name])
    assert fits < beyond <= fits + int(size) // 50 + 1
    assert len(asked) <= 8
    (shortage,) = [each for each in rounds.last.findings if each.rule == "out-of-memory"]
    assert shortage.help.startswith("a batch of")
    assert shortage.help.count("a batch of") == 1
    for number, ending in ((fits, "ended"), (beyond, "raised")):
        path.write_text(HEAD + STEP + dedent(FITS[name]).replace(size, str(number)))
        assert outcome(warm, Program(path, ("cuda:0",), SIMULATE), {}).run.ending == ending


@pytest.mark.parametrize("name", SILENT)
def test_where_it_cannot_be_known_there_is_no_batch(warm: Warm, tmp_path: Path, name: str) -> None:
    rounds, _ = left(warm, tmp_path / "train.py", SILENT[name])
    assert rounds.left is not None
    assert "a batch of" not in rounds.why_left


def test_a_notebook_is_run_with_other_batches_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = {
        "a": "# The size\nimport torch\nfrom torch import nn\nBATCH_SIZE = 4000",
        "b": STEP,
        "c": "step(build('cuda:0'), BATCH_SIZE, 'cuda:0')",
    }
    monkeypatch.chdir(tmp_path)
    fix = NotebookFix(lambda: None, {})
    reader = fix.begin([{"cell": cell, "source": source} for cell, source in cells.items()], SIMULATE)
    *_, help_, closing = wait_for(fix, reader, {"a": "In[11]", "b": "In[12]", "c": "In[13]"})
    found = re.search(r"a batch of (\d+) fits \(\d+\.\d MiB of 48\.0 MiB\), (\d+) does not: .*In\[11\] line 4", help_)
    assert found is not None
    fits, beyond = map(int, found.groups())
    assert 500 < fits < beyond <= fits + 81
    assert help_.count("a batch of") == 1
    assert "a batch of" not in closing
    assert fix.state is not None
    assert (fix.state["state"], fix.state["changed"]) == ("left", [])
