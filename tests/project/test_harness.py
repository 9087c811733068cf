"""What the harness promises the tests that use it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from devtrace.recording.columns import sites
from fix_rounds import outcome
from programs import Program, run
from shells import new_shell
from warm import Warm


def _run_plain(warm: Warm, path: Path) -> list[int]:
    return run(warm, path, mode="plain").values


def _run_fixed(warm: Warm, path: Path) -> list[int]:
    return [int(outcome(warm, Program(path, ("cuda:0",)), {}).value)]


@pytest.mark.parametrize("ran", [_run_plain, _run_fixed])
def test_a_program_whose_lines_were_swapped_runs_as_it_is_now(
    warm: Warm, tmp_path: Path, ran: Callable[[Warm, Path], list[int]]
) -> None:
    program = tmp_path / "bug.py"
    lines = ("    x = 1\n", "    x = 2\n")
    seen = []
    for order in (lines, lines[::-1]):
        program.write_text(f"def run(device):\n{''.join(order)}    return x\n")
        os.utime(program, (1_000_000_000, 1_000_000_000))  # size and second are what a compiled file is told by
        seen += ran(warm, program)
    assert seen == [2, 1]


NOTE = """
import torch, devtrace
def report():
    with devtrace.record("cuda:1") as recording:
        for _ in range(4):
            torch.ones(3, device="cuda:0").sum().item()
    return recording.report
"""


def test_a_rule_that_only_makes_notes_can_have_a_golden(warm: Warm, tmp_path: Path) -> None:
    (tmp_path / "note.py").write_text(NOTE)
    text, slugs = warm.call("programs", "facts_in", "en", str(tmp_path / "note.py"))
    assert "i note.py line 6" in text
    assert slugs == ["host-sync", ""]


def test_a_shell_leaves_no_cell_to_the_next() -> None:
    before = sites.cells_so_far()
    with new_shell("%load_ext devtrace", "import torch"):
        assert sites.cells_so_far()[-1].text == "import torch\n"
    assert sites.cells_so_far() == before
