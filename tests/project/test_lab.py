"""`make lab` opens copies of the notebooks, so that what a user saves is none of git's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import lab
import pytest

from folders import ROOT


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Notebooks in two languages."""
    (tmp_path / "zh").mkdir()
    (tmp_path / "00-a.ipynb").write_text("a")
    (tmp_path / "zh" / "00-a.ipynb").write_text("zh a")
    return tmp_path


def texts(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in sorted(folder.rglob("*.ipynb"))}


def test_each_notebook_has_a_copy_in_one_folder_beside_it(folder: Path) -> None:
    own = lab.own_copies(folder)
    assert own == folder / "yours"
    assert texts(own) == {"00-a.ipynb": "a", "zh/00-a.ipynb": "zh a"}


def test_what_the_user_saved_stays_and_what_nobody_changed_follows_its_notebook(folder: Path) -> None:
    own = lab.own_copies(folder)
    (own / "00-a.ipynb").write_text("a, run")
    (own / "own.ipynb").write_text("another")
    for path in (folder / "00-a.ipynb", folder / "zh" / "00-a.ipynb"):
        path.write_text("newer")
    lab.own_copies(folder)
    assert texts(own) == {"00-a.ipynb": "a, run", "own.ipynb": "another", "zh/00-a.ipynb": "newer"}
    (own / "00-a.ipynb").unlink()
    lab.own_copies(folder)
    assert texts(own)["00-a.ipynb"] == "newer"


def test_git_does_not_see_the_copies() -> None:
    command = ["git", "check-ignore", "-q", "notebooks/yours/00-the-first-trace.ipynb"]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == 0


def test_jupyterlab_opens_on_the_copy(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda program, command: started.append(command))
    monkeypatch.chdir(folder.parent)
    lab.main(f"{folder.name}/00-a.ipynb", ["--no-browser"])
    assert started[0][:4] == [
        sys.executable, "-m", "jupyterlab", f"--LabApp.default_url=/lab/tree/{folder.name}/yours/00-a.ipynb"
    ]  # fmt: skip
    assert (folder / "yours" / "00-a.ipynb").exists()
