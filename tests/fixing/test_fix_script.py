"""A round of `devtrace fix` goes on before the first statement that it changes, as if it had begun at the top."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from devtrace.cli.main import main

pytestmark = pytest.mark.slow

LOAD = """'''A script.'''
from __future__ import annotations
import numpy, os, random, sys, time
import torch
from tqdm import tqdm
print("load", random.random(), len(sys.argv))
for _ in tqdm([0]): time.sleep(1.2)
"""
BUGS = """
weight = torch.ones(3)
'''No doc of the script.'''
shift: Tensor = torch.ones(3)
x = torch.zeros(3, device="cuda:0")
drawn = random.random(), numpy.random.rand()
print("row", drawn, __doc__, __name__, __file__ == os.path.abspath("train.py"))
x = x * weight
x = x + shift
sys.exit(0)
"""


def printed(capfd: pytest.CaptureFixture[str]) -> list[str]:
    lines = capfd.readouterr().err.splitlines()
    return [line for line in lines if line.startswith(("load", "row", "devtrace: proven", "saved"))]


def test_what_is_above_the_first_change_runs_once_and_is_as_it_was_in_every_round(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "train.py").write_text(LOAD + BUGS)
    assert main(["fix", "train.py", "word"]) == 0
    load, *rows, proven = printed(capfd)
    assert load.split()[0::2] == ["load", "2"]
    assert rows == [rows[0]] * 4  # of three rounds, and of the reference
    assert rows[0].endswith("A script. __main__ True")
    assert "the same output and " in proven


@pytest.mark.parametrize("holds", ["rows = open(__file__)", "shared = torch.ones(3).share_memory_()"])
def test_a_script_that_a_fork_would_not_have_whole_runs_from_its_top(
    holds: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "train.py").write_text(LOAD.replace("print(", f"{holds}\nprint(", 1) + BUGS)
    assert main(["fix", "train.py"]) == 0
    assert [line.split()[0] for line in printed(capfd)] == ["load", "row"] * 4 + ["devtrace:"]


@pytest.mark.parametrize(
    ("holds", "is_whole"),
    [
        ("rows = [1]", True),
        ("threading.Thread(target=time.sleep, args=(600,), daemon=True).start()", False),
        ("child = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE)", False),
    ],
)
def test_a_fork_has_no_thread_and_no_child(holds: str, is_whole: bool) -> None:
    imports = "import subprocess, sys, threading, time\nfrom devtrace.runtime import forks"
    program = f"{imports}\n{holds}\nprint(forks.could_go_on())"
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == f"{is_whole}\n"


def test_an_error_of_what_a_round_left_behind_is_no_error_of_the_program(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    anew, make = "import shutil; shutil.rmtree('out', ignore_errors=True)\n", "os.mkdir('out')\n"
    text = LOAD.replace("print(", f"{anew}print(") + BUGS.replace("x = x * weight", f"{make}x = x * weight")
    (folder / "train.py").write_text(text)
    assert main(["fix", "train.py"]) == 0
    assert "FileExistsError" not in capfd.readouterr().err
