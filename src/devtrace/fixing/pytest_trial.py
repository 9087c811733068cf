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
    """Return a report whose first error says what came of its fix: the first with which the test passes, if one does.

    A note says why nothing was tried.
    """
    at = next((at for at, each in enumerate(report.findings) if each.severity == "error" and each.edits), None)
    if at is None:
        return report
    if not forks.CAN_FORK or running_simulation() is None:
        why = "pytest.no-try-real" if forks.CAN_FORK else "pytest.no-try-fork"
        return replace(report, notes=(*report.notes, sentence(why)))
    found = report.findings[at]
    choices = [Choice(found.help, found.edits), *found.others][:MOST]
    came = ((choice, _failure(item, choice, max(LEAST, 3 * seconds))) for choice in choices)
    first = next(came)
    shown, raised = next((each for each in chain([first], came) if not each[1]), first)
    proof = sentence("pytest.try-fails", raised=raised) if raised else sentence("pytest.try-passes")
    edits = tuple(replace(each, grade="tried") for each in shown.edits)
    findings = [*report.findings]
    findings[at] = replace(found, help=shown.help, edits=edits, proof=proof)
    return replace(report, findings=tuple(findings))


def _failure(item: pytest.Item, choice: Choice, limit: float) -> str:
    """Run a test with an edit; return in words how it fails, empty if it passes."""
    try:
        texts = {file: _edited(file, choice).data for file in {edit.file for edit in choice.edits}}
    except UsageError as misfit:
        return str(misfit)
    with tempfile.TemporaryDirectory(prefix="devtrace-try-") as folder:
        said = Path(folder) / "failure"
        pid = forks.fork()
        if not pid:
            with forks.to_its_end():
                overlay.use(texts)
                said.write_text(_run_again(item, folder))
        late = threading.Timer(limit, os.kill, (pid, signal.SIGKILL))
        late.start()
        os.waitpid(pid, 0)
        is_late = not late.is_alive()
        lost = sentence("pytest.try-late", limit=f"{limit:.0f}") if is_late else sentence("fix.signal")
        late.cancel()
        return said.read_text() if said.exists() else lost


def _edited(file: str, choice: Choice) -> SourceText:
    return SourceText(file, Path(file).read_bytes()).edited(edit for edit in choice.edits if edit.file == file)


def _run_again(item: pytest.Item, folder: str) -> str:
    """Run a test in a session of its own, which imports the user's modules anew and writes into the folder alone."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nothing, stream)
    running_simulation().stop()
    os.environ["TMPDIR"] = tempfile.tempdir = folder
    confine(folder)
    forget_modules()
    config, outcome = item.config, _Outcome()
    rewrites: object = config.pluginmanager.rewrite_hook
    sys.meta_path[:] = [each for each in sys.meta_path if each is not rewrites]
    places = {"rootdir": str(config.rootpath), "inifilename": config.inipath, "basetemp": f"{folder}/tests"}
    test = f"{item.path}::{item.nodeid.partition('::')[2]}"
    again = pytest.Config.fromdictargs({**vars(config.option), **_ALONE, **places}, [test])
    again.pluginmanager.register(outcome)
    again.hook.pytest_cmdline_main(config=again)
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
