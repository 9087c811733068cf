"""The project may not grow: the counts stay below the caps of lines.json, and a cap only falls."""

import json
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from folders import ROOT

PARTS = {"python": ("src/devtrace", ".py"), "typescript": ("labextension/src", ".ts"), "tests": ("tests", ".py")}
CAPS = Path("tests/project/lines.json")


def git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def count(folder: str, ending: str) -> int:
    names = git("ls-files", "-z", "--", folder).split("\0")
    return sum((ROOT / name).read_bytes().count(b"\n") for name in names if name.endswith((ending, f"{ending}x")))


@pytest.mark.parametrize("part", PARTS)
def test_a_part_has_no_more_lines_than_its_cap(part: str) -> None:
    assert count(*PARTS[part]) <= json.loads((ROOT / CAPS).read_text())[part]


def test_no_cap_has_ever_risen() -> None:
    commits = git("log", "--format=%h", "--", str(CAPS)).split()[::-1]
    versions = [json.loads(git("show", f"{commit}:{CAPS}")) for commit in commits]
    assert [part for before, after in pairwise(versions) for part in PARTS if after[part] > before[part]] == []
