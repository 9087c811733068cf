"""How many of our folders the walk from an untraced error to its report enters (CONTRIBUTING draws it)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest
import torch

import devtrace
from devtrace.recording.context import hooks
from odd_programs import Scaled

pytestmark = pytest.mark.one_in(3)

OURS = str(Path(devtrace.__file__).parent)
THE_DEVICE = "simulation"  # answers as a real one does, and explains nothing
ASKED = {"dtypes", "jobs", "memory"}
"""Features whose rules are asked in turn, where rules of the kernel are; `features.py` finds them."""
MOST_FOLDERS = 15


def forgotten_buffer() -> None:
    net = Scaled().to("cuda")
    net(torch.zeros(2, 3, device="cuda"))


def values_of_a_device() -> None:
    x = torch.zeros(4, device="cuda")
    x.numpy()


def two_dtypes() -> None:
    weight = torch.zeros(4, 4, dtype=torch.float64)
    torch.zeros(2, 4) @ weight


@pytest.mark.parametrize("program", [forgotten_buffer, values_of_a_device, two_dtypes])
def test_an_untraced_error_is_explained_in_few_folders(program: Callable[[], None]) -> None:
    hooks.install()
    try:
        with devtrace.simulate("cuda:1"):
            for _ in range(2):  # the first time, modules are imported
                folders = folders_entered(program)
    finally:
        hooks.uninstall()
    rooms = {folder for folder in folders - {".", THE_DEVICE} if folder.partition("/")[0] not in ASKED}
    assert len(rooms) <= MOST_FOLDERS, sorted(folders)


def folders_entered(program: Callable[[], None]) -> set[str]:
    files = set[str]()

    def call(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(OURS):
            files.add(frame.f_code.co_filename)

    with pytest.raises((RuntimeError, TypeError)) as caught:
        program()
    before = sys.getprofile()
    sys.setprofile(call)
    try:
        (finding,) = devtrace.explain(caught.value).findings
    finally:
        sys.setprofile(before)
    assert finding.severity == "error"
    return {Path(file).parent.relative_to(OURS).as_posix() for file in files}
