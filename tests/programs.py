"""Runs a program under devtrace in a process of its own, and gives back what the report said as plain data."""

from __future__ import annotations

import importlib.util
import multiprocessing
import sys
import traceback
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch

import devtrace
from devtrace.api.results import Report
from devtrace.diagnosis.findings import Finding

LIMIT = 300  # seconds, for a machine that is busy with something else

# Every program starts from a server that has imported torch and run nothing. A fork of the test's own process would
# hang in its first parallel op: the threads that torch's pool believes in do not live on in a child.
FRESH = multiprocessing.get_context("forkserver")
FRESH.set_forkserver_preload(
    [
        "torch",
        "numpy.ma",
        "devtrace.api.recording",
        "devtrace.recording.recording",
        "devtrace.api.diagnose",
        "devtrace.simulation.simulation",
    ]
)


@dataclass(frozen=True)
class Said:
    """What a program raised, and what its report says."""

    raised: str = ""
    text: str = ""
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    broken: str = field(default="", repr=False)

    @property
    def errors(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.severity == "error"]

    @property
    def alarms(self) -> list[str]:
        """Errors and warnings, a line each."""
        bad = [finding for finding in self.findings if finding.severity != "note"]
        return [f"{finding.rule} at {finding.site}: {finding.message}" for finding in bad]


def run(path: Path, args: tuple[str, ...] = ("cuda:0",), simulate: str = "cuda:2") -> Said:
    """What `run(*args)` of a file does on simulated devices."""
    here, there = multiprocessing.Pipe(duplex=False)
    child = FRESH.Process(target=_child, args=(there, path, args, simulate))
    child.start()
    there.close()
    try:
        said = here.recv() if here.poll(LIMIT) else Said(broken=f"no end after {LIMIT} s")
    except EOFError:
        said = Said(broken="the process died")
    child.kill()
    child.join()
    assert isinstance(said, Said)
    assert not said.broken, said.broken
    return said


def _child(to: Connection, path: Path, args: tuple[str, ...], simulate: str) -> None:
    torch.set_num_threads(1)  # the programs are small; threads that wait for each other cost more on a busy machine
    try:
        said = _said(path, args, simulate)
    except BaseException:  # noqa: BLE001 (told to the test, whatever it is)
        said = Said(broken=traceback.format_exc())
    to.send(said)


def _said(path: Path, args: tuple[str, ...], simulate: str) -> Said:
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location("program", path)
    assert spec is not None
    assert spec.loader is not None
    program: Any = importlib.util.module_from_spec(spec)
    sys.modules["program"] = program
    raised = ""
    try:
        with devtrace.record(simulate=simulate) as recording:
            spec.loader.exec_module(program)
            program.run(*args)
    except Exception as error:  # noqa: BLE001 (the program's own failure is what is studied)
        raised = f"{type(error).__name__}: {error}"
    report: Report = devtrace.diagnose(recording.trace)
    return Said(raised, report.text, report.findings, report.notes)
