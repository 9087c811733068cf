"""The page for agents: short enough to be given whole, and each of its commands does what it says."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from documents import PAGES
from warm import Ended, Warm

PAGE = PAGES["agents.md"]
BROKEN = """import torch

model = torch.nn.Linear(2, 2).to("cuda:0")
batch = torch.ones(1, 2)
print(model(batch).shape)
"""


def commands() -> dict[str, list[str]]:
    """Return the commands of the page, each by its subcommand and flags."""
    found = re.findall(r"`devtrace (\w+ [^`]*\.[^`]*)`", PAGE)
    return {line: shlex.split(line) for line in found}


def test_the_page_for_agents_can_be_given_whole() -> None:
    assert len(PAGE.encode()) <= 4_096


@pytest.mark.slow
def test_each_command_of_the_page_for_agents_does_what_the_page_promises(tmp_path: Path, warm: Warm) -> None:
    (tmp_path / "train.py").write_text(BROKEN)

    def ran(beginning: str) -> Ended:
        [words] = [words for line, words in commands().items() if line.startswith(beginning)]
        return warm.devtrace(tmp_path, *words)

    def finding(ended: Ended) -> dict[str, object]:
        data = json.loads(ended.stdout.splitlines()[-1])
        assert (data["format"], data["form"], data["all_clear"]) == ("devtrace-findings", "compact", False)
        found: dict[str, object] = data["findings"][0]
        return found

    untraced = ran("run --untraced")
    assert (untraced.returncode, finding(untraced)["severity"]) == (1, "error")
    recorded = ran("run --json=compact")
    assert (recorded.returncode, finding(recorded)["site"]) == (
        1,
        {"file": "train.py", "line": 5, "text": "model(batch)"},
    )
    (tmp_path / "run.devtrace").rename(tmp_path / "before.devtrace")
    (tmp_path / "traceback.txt").write_text(untraced.stderr)
    explained = ran("explain")
    assert (explained.returncode, finding(explained)["rule"]) == (1, "device-mismatch")

    fixed = ran("fix")
    assert fixed.returncode == 0
    assert "+++ b/train.py" in (tmp_path / "fix.patch").read_text()
    (tmp_path / "train.py").write_text(BROKEN.replace("ones(1, 2)", 'ones(1, 2, device="cuda:0")'))
    again = ran("run --json=compact")
    assert (again.returncode, json.loads(again.stdout.splitlines()[-1])["all_clear"]) == (0, True)
    (tmp_path / "run.devtrace").rename(tmp_path / "after.devtrace")
    assert ran("diff").returncode == 0
    (tmp_path / "after.devtrace").rename(tmp_path / "train.rank0.devtrace")
    reported = warm.devtrace(tmp_path, "report", "train.rank0.devtrace", "--json=compact")
    assert reported.returncode == 0
