"""The process in which a notebook's cells run, and the forks of it that wait before a cell: hosts.

    python -m devtrace.fixing.notebooks.host DEVICES     reads and prints lines of JSON: `Asked`, and what came

A round goes on from the last host before its first changed cell, so that no cell above runs twice. The cells run in a
fork of the host, which waits: for the end, or for what is asked next. Where there are no forks, a run takes a process.
"""

from __future__ import annotations

import io
import json
import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import IO, Any, Final, NoReturn, cast

from devtrace.contract import findings_json
from devtrace.diagnosis.findings import to_json
from devtrace.fixing import values
from devtrace.fixing.confined import branch
from devtrace.fixing.notebooks.state import Asked, AskedCell
from devtrace.fixing.program import MOST_OUTPUT, Ending
from devtrace.fixing.source_text import forget_modules
from devtrace.notebook.cells import Traced
from devtrace.notebook.quiet_shell import new_shell
from devtrace.runtime import forks, overlay
from devtrace.source.user_code import OWN_PACKAGES
from devtrace.words.errors import named

WORTH: Final = 1.0
"""Seconds of cells after which another host is worth its memory."""
OVER: Final = "over"
WAITS: Final = "waits"
"""What a fork says to its host: it has told of its run; it has become a host itself."""


@dataclass
class Host:
    """A shell in which the cells before `position` have run, and what was found in them."""

    shell: Any
    asks: IO[str]
    answers: IO[str]
    position: int = 0
    before: IO[str] | None = None  # to the host that this one is a fork of
    traced: dict[int, Traced] = field(default_factory=dict)  # by the cells' numbers
    printed: dict[int, str] = field(default_factory=dict)
    failed: BaseException | None = None  # by the first cell to run, before: it answers the first question

    def serve(self, asked: Asked | None = None) -> NoReturn:
        """Run what is asked for, until nobody asks."""
        asked, failed = asked or self.next(), self.failed
        if asked is not None and failed is not None:
            self.failed = None
            self._tell("raised", failed)
            asked = self.next()
        while asked is not None:
            if asked["first"] < self.position and self.before is not None:
                _say(self.before, asked)
                break
            again = asked["again"] if self.before is None else []
            run = partial(self._run, asked, [*again, *range(self.position, len(asked["cells"]))])
            asked = self._in_a_fork(run, asked["until"]) if forks.CAN_FORK else run()
        os._exit(0)

    def next(self) -> Asked | None:
        line = self.asks.readline()
        return json.loads(line) if line else None

    def _in_a_fork(self, run: Callable[[], object], until: float | None) -> Asked | None:
        """Let a fork run cells; return what is to be run from here next."""
        reading, writing = os.pipe()
        pid = forks.fork()
        if not pid:
            os.close(reading)
            self.before = os.fdopen(writing, "w")
            try:
                branch()
                run()
            except BaseException as fault:  # noqa: BLE001 (whoever asked hears of it)
                _say(self.answers, {"fault": named(fault)})
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as said:
            return self._wait(said, pid, until)

    def _wait(self, said: IO[str], pid: int, until: float | None) -> Asked | None:
        is_late = False
        if until is not None and not select.select([said], [], [], max(until - monotonic(), 0))[0]:
            is_late = True
            os.kill(pid, signal.SIGKILL)
        last: Any = ""
        while (line := said.readline()) and (last := json.loads(line)) == WAITS:
            pass
        os.waitpid(pid, 0)
        if isinstance(last, dict):
            return cast(Asked, last)
        if last != OVER:
            self._tell("time" if is_late else "signal")
        return self.next()

    def _run(self, asked: Asked, indexes: Sequence[int]) -> None:
        """Run cells, and tell what came of it."""
        overlay.use_from_environment()
        if overlay.files() and asked["again"]:
            forget_modules()
        os.environ[OWN_PACKAGES] = asked["own"]
        began = monotonic()
        for at, index in enumerate(indexes):
            if forks.CAN_FORK and index >= self.position and monotonic() - began > WORTH:
                self.position = index
                self._say_to_host(WAITS)
                self.serve(self._in_a_fork(partial(self._run, asked, indexes[at:]), asked["until"]))
            _say(self.answers, {"cell": index + 1})
            cell = asked["cells"][index]
            error = self._run_cell(index + 1, cell)
            if error is not None and not cell["may_fail"]:
                self._tell("raised", error)
                break
        else:
            self._tell("ended")
        self._say_to_host(OVER)

    def _run_cell(self, number: int, cell: AskedCell) -> BaseException | None:
        self.traced.pop(number, None)
        self.shell.execution_count = number
        printed = io.StringIO()
        with redirect_stdout(printed), redirect_stderr(io.StringIO()):
            ran = self.shell.run_cell(cell["source"], store_history=True, cell_id=cell["id"])
        self.printed[number] = printed.getvalue()[:MOST_OUTPUT]
        error: BaseException | None = ran.error_before_exec or ran.error_in_exec
        return error

    def _say_to_host(self, what: str) -> None:
        if self.before is not None:
            _say(self.before, what)

    def keep(self, what: str, traced: Traced | None) -> None:
        if what == "finished" and traced is not None:
            self.traced[traced.cell.count or 0] = traced

    def _tell(self, ending: Ending, error: BaseException | None = None) -> None:
        """Say what was found in all cells so far, in their order, and how the last one ended."""
        traced = [self.traced[number] for number in sorted(self.traced)]
        ordered = (sorted(each.report.findings, key=lambda finding: finding.op) for each in traced)
        told = {
            "ending": ending,
            "findings": [to_json(finding) for findings in ordered for finding in findings],
            "cells": numbers_of_cells(),
            "crossings": sum(sum(findings_json.counts_of(each.report).values()) for each in traced),
            "peaks": findings_json.peaks_of(each.report for each in traced),
            "values": values.values_of(self.shell.user_ns),
            "raised": error and findings_json.raised(error),
            "printed": "".join(self.printed[number] for number in sorted(self.printed)),
        }
        _say(self.answers, told)


def _say(to: IO[str], what: object) -> None:
    to.write(json.dumps(what) + "\n")
    to.flush()


def numbers_of_cells() -> dict[str, int]:
    """Return the number of each cell by its file, also of one that only defines what others call."""
    if "torch" not in sys.modules:
        return {}
    from devtrace.recording.columns import sites

    return {cell.file: cell.number for cell in sites.cells_so_far()}


def _begin(host: Host, devices: str) -> None:
    """Trace every cell from here on, on simulated devices; torch is imported for these anyhow."""
    from devtrace.notebook.magic import extensions

    for magic, argument in (("load_ext", "devtrace"), ("devtrace", f"simulate {devices}"), ("devtrace", "on")):
        host.shell.run_line_magic(magic, argument)
    values.seed()  # torch's too, now that there are devices
    extensions[host.shell].tracing.observe(host.keep)


def _end_with(asks: IO[str]) -> None:
    asks.read()
    os._exit(1)


def main() -> None:
    forks.end_with_parent()
    asks, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nothing, stream)
    devices, sys.argv = sys.argv[1], [""]
    host = Host(new_shell(), asks, answers)
    _begin(host, devices)
    asked = host.next()
    if not forks.CAN_FORK:  # nor does the system end it with the process that asks once
        threading.Thread(target=_end_with, args=(asks,), daemon=True).start()
    host.serve(asked)


if __name__ == "__main__":
    main()
