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
from devtrace.fixing.running import Running, running_fork
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


def beginning(tracing: Tracing, request: Job) -> Beginning:
    """Return where a job begins: in a fork, after the cells that ran in this kernel, or at the top in a new process."""
    position = _cells_run_so_far(tracing, request["cells"], one=request["one"])
    if not position:
        return Beginning()
    limit = max(LEAST, 3 * sum(cell["took"] for cell in request["cells"])) if request["one"] else None
    return Beginning(partial(_fork_host, tracing, request["cells"], position), position, limit)


def _cells_run_so_far(tracing: Tracing, cells: Sequence[PageCell], *, one: bool) -> int:
    """Return how many of the cells have run in this kernel as they are; 0 where it cannot be forked now."""
    is_idle = threading.current_thread() is threading.main_thread() and tracing.run is None
    have_ids = all(tracing.ran.get(cell["cell"], ("",))[0] != cell["cell"] for cell in cells)  # else it is a label
    if not (forks.CAN_FORK and tracing.simulated and is_idle and have_ids):
        return 0
    ran = texts_of(tracing.namespace)
    failed = {cell for cell, raised in tracing.raised.items() if is_known(raised)}
    passed = {cell["cell"] for cell in cells[:-1] if one}  # their reader went on to the last of them
    unfinished = (failed - passed) | tracing.running
    have_run = [cell["source"].strip() in ran and cell["cell"] not in unfinished for cell in cells]
    return have_run.index(False) if False in have_run else 0


def _fork_host(tracing: Tracing, cells: Sequence[PageCell], count: int, env: Mapping[str, str], folder: str) -> Running:
    """Fork a host that has run the first `count` cells; in it cells have the numbers that the job gives them."""
    asks, answers = os.pipe(), os.pipe()
    pid = forks.fork()
    if not pid:
        from devtrace.recording.columns import sites

        with forks.to_its_end():
            os.close(asks[1])
            _give_way()
            _leave_the_kernel(tracing, folder)
            os.environ.update(env)  # also for a cell that simulates anew
            numbers_before = numbers_of_cells()
            sites.number_cells({cell["cell"]: number for number, cell in enumerate(cells[: count + 1], 1)})
            shell = _shell_of(tracing)
            host = NotebookHost(shell, os.fdopen(asks[0]), os.fdopen(answers[1], "w"), count)
            error, traced = getattr(sys, "last_value", None), _trace_of_failure(tracing, cells[count], numbers_before)
            if traced is not None:
                host.traced[count + 1] = traced
                is_last = traced.cell.count == shell.execution_count - 1  # nothing has run since
                host.kernel_error = error if is_last and error and text_of(error) == cells[count]["raised"] else None
            quieten(shell)
            extensions[shell].leave_running_cell()
            tracing.switch(on=True)
            tracing.observe_alone(host.keep)
            host.serve()
    os.close(asks[0])
    os.close(answers[1])
    return running_fork(pid, os.fdopen(asks[1], "w"), os.fdopen(answers[0]))


def _trace_of_failure(tracing: Tracing, cell: PageCell, numbers_before: Mapping[str, int]) -> Traced | None:
    """Return the kernel's trace of a failed cell, with the job's numbers of cells in place of `numbers_before`."""
    traces = [traced for traced in tracing.history if traced.cell.id == cell["cell"]]
    is_same_text = tracing.ran.get(cell["cell"], ("", ""))[1] == cell["source"]
    if not traces or not is_same_text or not any(finding.edits for finding in traces[-1].report.findings[:1]):
        return None  # a run of the cell may know more
    numbers = numbers_of_cells()
    new_numbers = {number: numbers[file] for file, number in numbers_before.items() if numbers[file] > 0}

    def part(data: dict[str, Any]) -> dict[str, Any]:
        return data | {"cell": new_numbers[data["cell"]]} if data.get("cell") else data

    def text(words: str) -> str:
        return _CELL.sub(lambda match: f"In[{new_numbers[int(match[1])]}]", words)

    try:
        findings = tuple(from_json(with_parts(to_json(found), part, text)) for found in traces[-1].report.findings)
    except KeyError:
        return None  # one is not in the page
    return replace(traces[-1], report=replace(traces[-1].report, findings=findings))


def _give_way() -> None:
    """Let other processes go first; if memory runs out, the system ends this process first."""
    os.setsid()
    os.nice(NICE)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def _leave_the_kernel(tracing: Tracing, folder: str) -> None:
    """Cut this fork off from the kernel's streams and sockets, which it shares, and from the user's files."""
    null_device = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null_device, stream)
    sys.stdin, sys.stdout, sys.stderr = (open(os.devnull, mode) for mode in ("r", "w", "w"))  # noqa: SIM115
    if kernel := getattr(_shell_of(tracing), "kernel", None):
        kernel.session.send = lambda *message, **how: None  # its sockets are not this process's
    asyncio._set_running_loop(None)  # a cell that awaits gets a loop of its own
    os.environ["TMPDIR"] = tempfile.tempdir = folder
    multiprocessing.current_process()._config.pop("tempdir", None)  # type: ignore[attr-defined]
    confine(folder)


def _shell_of(tracing: Tracing) -> Any:
    return next(shell for shell, extension in extensions.items() if extension.tracing is tracing)
