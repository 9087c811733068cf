"""Runs the corpora's programs on the accelerator: `cuda` in their text is `accel` for it.

    with Runner() as runner:
        runner.outcome(runner.prepared(program))      # as program.outcome, which runs it on simulated devices

One Python loads torch and the backend; each program runs in a fork of it.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any, Final, NamedTuple

import torch

from accelerator import NAME
from devtrace.report.mime import MIME_TYPE
from programs import Mode, Outcome, Program
from shells import new_shell
from warm import SHARED, Warm


class Cell(NamedTuple):
    """A cell that ran: its exception, what it printed, and for each report that it showed the findings."""

    error: str
    printed: str
    reports: list[list[dict[str, Any]]]


_CUDA: Final = re.compile(r"\b(is_)?cuda\b")


def spelled(text: str) -> str:
    """Return a program's text, or what is expected of it, with the accelerator's name in place of CUDA's."""
    return _CUDA.sub(lambda found: f"{found[1] or ''}{NAME}", text)


class Runner:
    """A Python with the accelerator. The copies that it runs, and what they give, are all workers' of a session."""

    def __enter__(self) -> Runner:
        self._folder = TemporaryDirectory()
        self._warm = Warm("accelerator")
        self._warm.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._warm.__exit__(*error)
        self._folder.cleanup()

    def prepared(self, program: Program) -> Program:
        """Return a copy of a program, and of the files beside it, for the accelerator."""
        files = sorted(program.folder.rglob("*.py"))
        told = [str(program.folder), *(file.read_text(encoding="utf-8") for file in files)]
        name = hashlib.sha256("\0".join(told).encode()).hexdigest()[:16]
        all_copies = SHARED.folder or Path(self._folder.name)
        folder = all_copies / f"copy-{name}"
        if not folder.exists():
            part = Path(mkdtemp(dir=all_copies)) / program.folder.name
            shutil.copytree(program.folder, part, ignore=shutil.ignore_patterns("__pycache__"))
            for path in part.rglob("*.py"):
                path.write_text(spelled(path.read_text(encoding="utf-8")), encoding="utf-8")
            with suppress(OSError):  # another worker was first
                part.parent.rename(folder)
        copy = folder / program.folder.name / program.path.name
        return Program(copy, tuple(map(spelled, program.arguments)))

    def outcome(self, program: Program, mode: Mode = "genuine") -> Outcome:
        """Run a prepared program, once for all who ask."""
        return program.outcome(self._warm, mode)

    def cells(self, sources: Sequence[str]) -> list[Cell]:
        """Run the cells of a notebook."""
        path = Path(self._folder.name) / "cells.json"
        path.write_text(json.dumps([spelled(source) for source in sources]))
        found: list[Cell] = self._warm.call("accelerator.programs", "cells_of", str(path))
        return found


def cells_of(path: str) -> list[Cell]:
    """Do in the forked process what `Runner.cells` promises."""
    torch.set_num_threads(1)
    cells = []
    with new_shell() as shell:
        for source in json.loads(Path(path).read_text()):
            ran = shell.run(source)
            reports = [report[MIME_TYPE]["findings"] for report in ran.reports]
            cells.append(Cell("" if ran.error is None else type(ran.error).__name__, ran.stdout, reports))
    return cells
