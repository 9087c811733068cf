"""What the harness promises the tests that use it."""

from __future__ import annotations

import os
from pathlib import Path

from programs import run_plain
from warm import Warm


def test_a_program_whose_lines_were_swapped_runs_as_it_is_now(warm: Warm, tmp_path: Path) -> None:
    program = tmp_path / "bug.py"
    lines = ("    x = 1\n", "    x = 2\n")
    seen = []
    for order in (lines, lines[::-1]):
        program.write_text(f"def run(device):\n{''.join(order)}    return x\n")
        os.utime(program, (1_000_000_000, 1_000_000_000))  # size and second are what a compiled file is told by
        seen += run_plain(warm, program)
    assert seen == [2, 1]
