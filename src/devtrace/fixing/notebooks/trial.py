"""Fix the notebook from where its kernel is: forks of the kernel go on where it failed, and touch nothing of it.

Each is a host, made in the kernel's main thread between two cells; the system keeps it from the user's files.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import re
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from devtrace.diagnosis.evidence.error_origins import is_known
from devtrace.diagnosis.findings import from_json, to_json, with_parts
from devtrace.fixing.confined import confine
from devtrace.fixing.notebooks.host import NotebookHost, numbers_of_cells
from devtrace.fixing.notebooks.run_again import texts_of
from devtrace.fixing.notebooks.state import Beginning, Job, PageCell
from devtrace.fixing.running import Running, of_fork
from devtrace.notebook.magic import extensions
from devtrace.notebook.quiet_shell import quieten
from devtrace.runtime import forks
from devtrace.runtime.tracebacks import text_of

if TYPE_CHECKING:
    from devtrace.notebook.cells import Traced, Tracing

_CELL: Final = re.compile(r"\bIn\[(\d+)\]")
NICE: Final = 5
"""How much a trial gives way to what the user runs meanwhile."""
LEAST: Final = 10.0
"""Seconds that the shortest cells get, others three times what they took until their error."""


def beginning(tracing: Tracing, asked: Job) -> Beginning:
    """Return how a job goes on behind the cells that ran in this kernel; in a process, where no fork of it can."""
    position = _position(tracing, asked["cells"], one=asked["one"])
    if not position:
        return Beginning()
    limit = max(LEAST, 3 * sum(each["took"] for each in asked["cells"])) if asked["one"] else None
    return Beginning(partial(_start, tracing, asked["cells"], position), position, limit)


def _position(tracing: Tracing, cells: Sequence[PageCell], *, one: bool) -> int:
    """Return how many of the cells have run in this kernel as they are; 0 where it cannot be forked now."""
    is_idle = threading.current_thread() is threading.main_thread() and tracing.run is None
    have_ids = all(tracing.ran.get(each["cell"], ("",))[0] != each["cell"] for each in cells)  # else it is a label
    if not (forks.CAN_FORK and tracing.simulated and is_idle and have_ids):
        return 0
    ran = texts_of(tracing.namespace)
    failed = {cell for cell, raised in tracing.raised.items() if is_known(raised)}
    passed = {each["cell"] for each in cells[:-1] if one}  # their reader went on to the last of them
    left = (failed - passed) | tracing.running
    done = [each["source"].strip() in ran and each["cell"] not in left for each in cells]
    return done.index(False) if False in done else 0


def _start(tracing: Tracing, cells: Sequence[PageCell], ran: int, own: Mapping[str, str], folder: str) -> Running:
    """Let a fork wait behind the cells that ran. They go by the numbers that the job gives them."""
    asks, answers = os.pipe(), os.pipe()
    pid = forks.fork()
    if not pid:
        from devtrace.recording.columns import sites

        with forks.to_its_end():
            os.close(asks[1])
            _give_way()
            _leave_the_kernel(tracing, folder)
            os.environ.update(own)  # also for a cell that simulates anew
            before = numbers_of_cells()
            sites.number_cells({each["cell"]: number for number, each in enumerate(cells[: ran + 1], 1)})
            shell = _shell_of(tracing)
            host = NotebookHost(shell, os.fdopen(asks[0]), os.fdopen(answers[1], "w"), ran)
            error, traced = getattr(sys, "last_value", None), _as_it_failed(tracing, cells[ran], before)
            if traced is not None:
                host.traced[ran + 1] = traced
                is_last = traced.cell.count == shell.execution_count - 1  # nothing has run since
                host.failed = error if is_last and error and text_of(error) == cells[ran]["raised"] else None
            quieten(shell)
            extensions[shell].leave_running_cell()
            tracing.switch(on=True)
            tracing.observe_alone(host.keep)
            host.serve()
    os.close(asks[0])
    os.close(answers[1])
    return of_fork(pid, os.fdopen(asks[1], "w"), os.fdopen(answers[0]))


def _as_it_failed(tracing: Tracing, cell: PageCell, before: Mapping[str, int]) -> Traced | None:
    """Return what the kernel knows of a cell's error, as it is in the page. `before`: numbers that its words have."""
    of_cell = [each for each in tracing.history if each.cell.id == cell["cell"]]
    is_same = tracing.ran.get(cell["cell"], ("", ""))[1] == cell["source"]
    if not of_cell or not is_same or not any(each.edits for each in of_cell[-1].report.findings[:1]):
        return None  # a run of the cell may know more
    numbers = numbers_of_cells()
    now = {number: numbers[file] for file, number in before.items() if numbers[file] > 0}

    def part(data: dict[str, Any]) -> dict[str, Any]:
        return data | {"cell": now[data["cell"]]} if data.get("cell") else data

    def text(words: str) -> str:
        return _CELL.sub(lambda found: f"In[{now[int(found[1])]}]", words)

    try:
        findings = tuple(from_json(with_parts(to_json(each), part, text)) for each in of_cell[-1].report.findings)
    except KeyError:
        return None  # one is not in the page
    return replace(of_cell[-1], report=replace(of_cell[-1].report, findings=findings))


def _give_way() -> None:
    """Let the system ask this process and its forks first, for time and for memory."""
    os.setsid()
    os.nice(NICE)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def _leave_the_kernel(tracing: Tracing, folder: str) -> None:
    """Show nothing, read nothing, write nothing of the user's: what this process has open is the kernel's."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nothing, stream)
    sys.stdin, sys.stdout, sys.stderr = (open(os.devnull, mode) for mode in ("r", "w", "w"))  # noqa: SIM115
    if kernel := getattr(_shell_of(tracing), "kernel", None):
        kernel.session.send = lambda *message, **how: None  # its sockets are not this process's
    asyncio._set_running_loop(None)  # a cell that awaits gets a loop of its own
    os.environ["TMPDIR"] = tempfile.tempdir = folder
    multiprocessing.current_process()._config.pop("tempdir", None)  # type: ignore[attr-defined]
    confine(folder)


def _shell_of(tracing: Tracing) -> Any:
    return next(shell for shell, extension in extensions.items() if extension.tracing is tracing)
