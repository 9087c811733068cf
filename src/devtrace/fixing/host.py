"""A process that waits before a cell of a notebook or a statement of a script; forks of it run what follows.

    request = host.branch_at(3, request)    # returns in a fork, once for each request that it is to carry out

Paths of files come in (`RunRequest`), lines of JSON go out: {"cell": 3} as it begins, the result, and {"gone": 0}
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


class RunRequest(TypedDict):
    """A run, in a file whose path comes in: `first` is the index of the first cell that differs from the run before.

    `again` are cells that the first host, if it is asked, runs before those that it has not run yet; `one_device`:
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

    def next_request(self) -> RunRequest | None:
        self._path = self.asks.readline().rstrip()
        return self._read_request() if self._path else None

    def _read_request(self) -> RunRequest:
        request: RunRequest = json.loads(Path(self._path).read_text())
        return request

    def branch_at(self, position: int, request: RunRequest | None) -> RunRequest:
        """Return in a fork that carries out a request; this process waits for its end, then for the next request."""
        self.position, is_outdated = position, False
        while request is not None and not is_outdated:
            pid = forks.fork() if forks.CAN_FORK else 0
            if not pid:
                return self._begin_run(request)
            request = self._wait_for_fork(pid, request)
            is_outdated = request is not None and not self._is_first and request["first"] < position
            self.has_branched = position > 0
        os._exit(0)

    def _begin_run(self, request: RunRequest) -> RunRequest:
        request["again"] = request["again"] if self._is_first else []
        self._is_first, self._began = False, monotonic()
        branch()
        overlay.use_from_environment()
        os.environ[OWN_PACKAGES] = request["own"]
        if request["one_device"]:
            os.environ[ONE_DEVICE] = "1"
        if not forks.CAN_FORK:  # then the system does not end it with the process that asks
            threading.Thread(target=lambda: os._exit(bool(self.asks.read()) + 1), daemon=True).start()
        return request

    def _wait_for_fork(self, pid: int, request: RunRequest) -> RunRequest | None:
        """Wait for a fork's end; return a request that it read and left to this host, else the next one."""
        handler_before = signal.signal(signal.SIGTERM, lambda signal_number, _: os.kill(pid, signal_number))
        _, status = os.waitpid(pid, 0)
        signal.signal(signal.SIGTERM, handler_before)
        newest = self._read_request()
        if newest["number"] != request["number"]:
            return newest
        self.say({"gone": os.waitstatus_to_exitcode(status)})
        return self.next_request()

    def is_worth(self, request: RunRequest) -> bool:
        """Return whether a run took so long that another host pays; none goes on from a run on one memory."""
        return forks.CAN_FORK and not request["one_device"] and monotonic() - self._began > WORTH

    def say(self, what: object) -> None:
        self.answers.write(json.dumps(what) + "\n")
        self.answers.flush()

    def tell(
        self, ending: Ending, reports: Sequence[ReportData], values: Mapping[str, Any], printed: str, **extra: Any
    ) -> None:
        """Send the result of a run: how it ended, and its findings in the order of the program."""
        findings_of_runs = (sorted(report.findings, key=lambda finding: finding.op) for report in reports)
        result = {
            "ending": ending,
            "findings": [to_json(finding) for findings in findings_of_runs for finding in findings],
            "crossings": sum(sum(findings_json.counts_of(report).values()) for report in reports),
            "peaks": findings_json.peaks_of(reports),
            "values": values,
            "printed": printed,
        }
        self.say(result | extra)
