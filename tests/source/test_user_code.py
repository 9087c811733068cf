"""Whose code a file is, on any system."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from devtrace.source import user_code
from devtrace.source.saved_files import CodeOwner
from devtrace.source.user_code import import_name_of, owner_of
from warm import LIMIT


@pytest.fixture
def started_with_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this Python not have been started with -c, as the workers of a parallel run are."""
    monkeypatch.setattr(user_code, "_TYPED", tuple(each for each in user_code._TYPED if each != "<string>"))


@pytest.mark.parametrize(
    ("file", "owner"),
    [
        (r"C:\Users\me\venv\Lib\site-packages\timm\models\vit.py", "package"),
        (r"C:\Users\me\venv\Lib\site-packages\IPython\core\shell.py", "hidden"),
        (r"C:\Users\me\train.py", "user"),
        ("/home/me/venv/lib/python3.11/site-packages/timm/models/vit.py", "package"),
        ("<stdin>", "user"),
        ("<string>", "hidden"),
    ],
)
@pytest.mark.usefixtures("started_with_a_file")
def test_a_file_is_the_users_a_packages_or_nobodys(file: str, owner: CodeOwner) -> None:
    assert owner_of(file) == owner


def test_an_installed_file_is_known_by_its_package_with_either_slash() -> None:
    windows = r"C:\venv\Lib\site-packages\timm\vit.py"
    assert import_name_of(windows) == "timm"
    assert import_name_of("/venv/lib/python3.11/site-packages/six.py") == "six"


PROGRAM = """
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import torch

import devtrace


@dataclass
class State:
    table: torch.Tensor = field(default_factory=partial(torch.zeros, 2))


class Pair(NamedTuple):
    left: torch.Tensor
    right: torch.Tensor


with devtrace.record() as recording:
    state = State()
    Pair(state.table, torch.zeros(3))
print([op.site.text for op in recording.trace.ops if op.site is not None])
"""


def test_what_a_dataclass_makes_is_made_where_it_is_called(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, str(tmp_path / "program.py")]
    got = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=True)
    assert got.stdout == "['State()', 'torch.zeros(3)']\n"


def test_what_is_passed_with_c_is_the_users() -> None:
    program = "from devtrace.source.user_code import owner_of; print(owner_of('<string>'))"
    got = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=LIMIT, check=True)
    assert got.stdout == "user\n"
