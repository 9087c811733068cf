"""`pytest --devtrace-try`: a test that failed runs anew in a fork of pytest, with the edits of its report."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Final

import pytest

from devtrace.api.environment import running_simulation
from devtrace.api.results import Report
from devtrace.diagnosis.findings import Choice
from devtrace.fixing.confined import confine
from devtrace.fixing.source_text import SourceText, forget_modules
from devtrace.runtime import forks, overlay
from devtrace.words.catalogue import sentence
from devtrace.words.errors import UsageError
from devtrace.words.text_format import one_line

MOST: Final = 5
"""Candidates that are tried."""
LEAST: Final = 10.0
"""Seconds that the shortest test gets, others three times what they took."""
_ALONE: Final = {
    "assertmode": "plain", "devtrace_try": False, "usepdb": False, "numprocesses": None, "dist": "no", "tx": []
}  # fmt: skip
"""Options of a trial: Python itself imports the files, whose other texts it sees, and all is one process."""


def tried(item: pytest.Item, report: Report, seconds: float) -> Report:
    """Return a report whose first error has the first fix with which the test passes, if one does, and its proof.

    A note says why nothing was tried.
    """
    index = next((at for at, error in enumerate(report.findings) if error.severity == "error" and error.edits), None)
    if index is None:
        return report
    if not forks.CAN_FORK or running_simulation() is None:
        why = "pytest.no-try-real" if forks.CAN_FORK else "pytest.no-try-fork"
        return replace(report, notes=(*report.notes, sentence(why)))
    error = report.findings[index]
    choices = [Choice(error.help, error.edits), *error.others][:MOST]
    results = ((candidate, _failure_with(item, candidate, max(LEAST, 3 * seconds))) for candidate in choices)
    first = next(results)
    choice, raised = next((result for result in chain([first], results) if not result[1]), first)  # one that passes
    proof = sentence("pytest.try-fails", raised=raised) if raised else sentence("pytest.try-passes")
    edits = tuple(replace(edit, grade="tried") for edit in choice.edits)
    findings = [*report.findings]
    findings[index] = replace(error, help=choice.help, edits=edits, proof=proof)
    return replace(report, findings=tuple(findings))


def _failure_with(item: pytest.Item, choice: Choice, limit: float) -> str:
    """Run a test with an edit; return in words how it fails, empty if it passes."""
    try:
        texts = {file: _edited(file, choice).data for file in {edit.file for edit in choice.edits}}
    except UsageError as misfit:
        return str(misfit)
    with tempfile.TemporaryDirectory(prefix="devtrace-try-") as folder:
        failure_file = Path(folder) / "failure"
        pid = forks.fork()
        if not pid:
            with forks.to_its_end():
                overlay.use(texts)
                failure_file.write_text(_run_test_anew(item, folder))
        timer = threading.Timer(limit, os.kill, (pid, signal.SIGKILL))
        timer.start()
        os.waitpid(pid, 0)
        is_late = not timer.is_alive()
        no_answer = sentence("pytest.try-late", limit=f"{limit:.0f}") if is_late else sentence("fix.signal")
        timer.cancel()
        return failure_file.read_text() if failure_file.exists() else no_answer


def _edited(file: str, choice: Choice) -> SourceText:
    return SourceText(file, Path(file).read_bytes()).edited(edit for edit in choice.edits if edit.file == file)


def _run_test_anew(item: pytest.Item, folder: str) -> str:
    """Run a test in a session of its own, which imports the user's modules anew and writes into the folder alone."""
    null_device = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null_device, stream)
    running_simulation().stop()
    os.environ["TMPDIR"] = tempfile.tempdir = folder
    confine(folder)
    forget_modules()
    config, outcome = item.config, _Outcome()
    rewrite_hook: object = config.pluginmanager.rewrite_hook
    sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not rewrite_hook]
    places = {"rootdir": str(config.rootpath), "inifilename": config.inipath, "basetemp": f"{folder}/tests"}
    test = f"{item.path}::{item.nodeid.partition('::')[2]}"
    trial_config = pytest.Config.fromdictargs({**vars(config.option), **_ALONE, **places}, [test])
    trial_config.pluginmanager.register(outcome)
    trial_config.hook.pytest_cmdline_main(config=trial_config)
    return outcome.failure


class _Outcome:
    """Report of a session on its only test."""

    failure = "pytest: no test ran"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            self.failure = one_line(crash.message if crash is not None else report.longreprtext)
        elif report.when == "call":
            self.failure = ""
