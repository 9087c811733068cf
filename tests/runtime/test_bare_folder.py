"""devtrace as a bare folder in the path, of which nothing says that it is installed: it records, saves and loads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import devtrace

PROGRAM = """
import importlib.metadata
try:
    importlib.metadata.version("devtrace")
except importlib.metadata.PackageNotFoundError:
    print("not installed")
import torch
import devtrace
with devtrace.record(simulate="cuda:1", save="run.devtrace") as recording:
    torch.ones(3).cuda().sum()
print(devtrace.__version__, len(recording.report.trace.ops), len(devtrace.load("run.devtrace").ops))
"""


def linked(folder: Path) -> None:
    """Link all packages of an environment, and of one that stands behind it, into a folder but devtrace itself."""
    folder.mkdir()
    for packages in filter(lambda path: path.name == "site-packages", map(Path, sys.path)):
        for each in packages.iterdir():
            if "devtrace" not in each.name and each.suffix != ".pth" and not (folder / each.name).exists():
                (folder / each.name).symlink_to(each)


def test_a_folder_without_metadata_loses_no_recording(tmp_path: Path) -> None:
    linked(tmp_path / "packages")
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "devtrace").symlink_to(Path(devtrace.__file__).parent)
    environment = os.environ | {"PYTHONPATH": f"{tmp_path / 'bare'}{os.pathsep}{tmp_path / 'packages'}"}
    command = [sys.executable, "-S", "-c", PROGRAM]
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split("\n")[0] == "not installed"
    version, recorded, loaded = ran.stdout.split("\n")[1].split()
    assert (version, recorded) == ("0", loaded)
    assert int(recorded) > 0
