"""A process that waits before a cell of a notebook or a statement of a script; forks of it run what follows.

    asked = host.branch_at(3, asked)        # returns in a fork, here once for each question

Paths of files come in (`Asked`), lines of JSON go out: {"cell": 3} that begins, what came of a run, and {"gone": 0}
when its process has ended, with its exit code. A round goes on from the last host before its first change, so that
nothing above it runs twice. Where there are no forks, a run takes a process.
"""

import json
import os
import signal
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import IO, Any, Final, TypedDict

from devtrace.contract import findings_json
from devtrace.diagnosis.findings import ReportData, to_json
from devtrace.fixing.confined import branch
from devtrace.fixing.program import Ending
from devtrace.fixing.source_text import Cell
from devtrace.runtime import forks, overlay
from devtrace.runtime.device_spec import ONE_DEVICE
from devtrace.source.user_code import OWN_PACKAGES

WORTH: Final = 1.0
"""Seconds of a run after which another host is worth its memory."""


class Asked(TypedDict):
    """A run, in a file whose path comes in: `first` is the index of the first cell that is another than in the last.

    `again` are those that the first host, if it is asked, runs before the ones that it has not run yet; `one_device`:
    all devices are one memory from where it begins.
    """

    number: int
    cells: list[Cell]
    first: int
    again: list[int]
    own: str
    one_device: bool


class Host:
    """Program as it is before `position`; `has_branched`: another run has gone on from there."""

    def __init__(self, asks: IO[str], answers: IO[str], position: int = 0) -> None:
        self.asks, self.answers, self.position = asks, answers, position
        self.has_branched = False
        self._is_first = True
        self._path = ""
        self._began = 0.0

    def next(self) -> Asked | None:
        self._path = self.asks.readline().rstrip()
        return self._read() if self._path else None

    def _read(self) -> Asked:
        asked: Asked = json.loads(Path(self._path).read_text())
        return asked

    def branch_at(self, position: int, asked: Asked | None) -> Asked:
        """Return in a fork, with what it is asked; this process waits, for its end or for what is asked next."""
        self.position, is_passed = position, False
        while asked is not None and not is_passed:
            pid = forks.fork() if forks.CAN_FORK else 0
            if not pid:
                return self._begin(asked)
            asked = self._wait(pid, asked)
            is_passed = asked is not None and not self._is_first and asked["first"] < position
            self.has_branched = position > 0
        os._exit(0)

    def _begin(self, asked: Asked) -> Asked:
        asked["again"] = asked["again"] if self._is_first else []
        self._is_first, self._began = False, monotonic()
        branch()
        overlay.use_from_environment()
        os.environ[OWN_PACKAGES] = asked["own"]
        if asked["one_device"]:
            os.environ[ONE_DEVICE] = "1"
        if not forks.CAN_FORK:  # nor does the system end it with the process that asks
            threading.Thread(target=lambda: os._exit(bool(self.asks.read()) + 1), daemon=True).start()
        return asked

    def _wait(self, pid: int, asked: Asked) -> Asked | None:
        """Wait until a fork has gone; return what was asked of it, and is of what has run before it, or comes next."""
        own = signal.signal(signal.SIGTERM, lambda number, _: os.kill(pid, number))
        _, status = os.waitpid(pid, 0)
        signal.signal(signal.SIGTERM, own)
        passed = self._read()
        if passed["number"] != asked["number"]:
            return passed
        self.say({"gone": os.waitstatus_to_exitcode(status)})
        return self.next()

    def is_worth(self, asked: Asked) -> bool:
        """Return whether so much has run that another host is worth it; a run on one memory is none to go on from."""
        return forks.CAN_FORK and not asked["one_device"] and monotonic() - self._began > WORTH

    def say(self, what: object) -> None:
        self.answers.write(json.dumps(what) + "\n")
        self.answers.flush()

    def tell(
        self, ending: Ending, reports: Sequence[ReportData], values: Mapping[str, Any], printed: str, **more: Any
    ) -> None:
        """Say what was found, in the order of the program, and how it ended."""
        ordered = (sorted(report.findings, key=lambda finding: finding.op) for report in reports)
        told = {
            "ending": ending,
            "findings": [to_json(finding) for findings in ordered for finding in findings],
            "crossings": sum(sum(findings_json.counts_of(report).values()) for report in reports),
            "peaks": findings_json.peaks_of(reports),
            "values": values,
            "printed": printed,
        }
        self.say(told | more)
