"""`devtrace run`: a program, the recording around it, and its report when it ends - however it ends.

Recording begins when the program has imported torch: what it sets in the environment before that still counts. It ends
with the last of what is registered at exit, so threads that outlive the script are in the trace. A process that is
ended by SIGTERM or SIGHUP saves first and then dies of the signal. Whatever goes wrong here is a sentence on stderr;
the exit code is the program's.
"""

from __future__ import annotations

import _thread
import atexit
import contextlib
import ctypes
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from devtrace.api.options import Options
from devtrace.cli.output import FOUND, begin, print_line
from devtrace.cli.run_program import Program, print_as_its_own
from devtrace.features import find
from devtrace.runtime import forks, observers  # noqa: F401 (the latter registers ahead of the program and the report)
from devtrace.runtime.import_hook import ImportWatcher
from devtrace.runtime.rank import ENDING, rank_of_job, ranked_path
from devtrace.runtime.requirements import sentence_of_fault
from devtrace.runtime.whole_files import write_somewhere
from devtrace.words.catalogue import sentence

if TYPE_CHECKING:
    from devtrace.api.recording import record
    from devtrace.diagnosis.findings import ReportData

PATIENCE: Final = 2.0
"""Seconds that the main thread gets to answer a signal; a thread that hangs in a collective never would, and torchrun
kills 30 s after its SIGTERM."""
SAVING: Final = 20.0
"""Seconds that a report under way in another thread gets before the process dies of its signal."""


class Launch:
    """One program under recording."""

    has_threads = True  # beside the main one, which may hang in C: one that saves then

    def __init__(self, program: Program, options: Options) -> None:
        self.program = program
        self.options = options
        self.rank = rank_of_job()
        self.process = forks.origin()
        self.folder = Path.cwd()  # to which paths are relative, wherever the program goes
        self.recording: record | None = None
        self.error: BaseException | None = None
        self.reported = threading.Event()
        self._reporting = threading.Lock()
        self._reporter = 0  # the thread that makes the report
        self._postponed = 0  # the signal that came to that thread meanwhile
        self._namespace: dict[str, Any] = {}
        self._ended_by = ""
        self._has_torch = False
        self._is_over_limit = False
        job_of = find("ranks", "launched")
        self._job = job_of(self.folder / self._plain_path) if job_of is not None else None
        self._ranks = self._job.size if self._job is not None else 1

    def run(self) -> None:
        """Run the program; its exception or exit passes through."""
        main, run = self.program.prepare()
        self._namespace = main.__dict__
        atexit.register(self._at_exit)
        self._watch_signals()
        try:
            ImportWatcher("torch").call_when_imported(self._begin)
            run()
        except BaseException as error:
            self.error = error
            self._leave_error(error)
            if type(error) is SystemExit and not error.code:
                self._exit_as_asked()
            raise
        self._exit_as_asked()

    def _leave_error(self, error: BaseException) -> None:
        print_as_its_own(error)

    def _begin(self) -> None:
        self._has_torch = True
        begin(self._start, ends_program=bool(self.options.simulate))

    def _start(self) -> None:
        from devtrace.api.recording import record

        flags = self.options.of_recording
        recording = record(self.options.simulate, name=self.program.name, namespace=self._namespace, **flags)
        recording.__enter__()
        self.recording = recording

    def _at_exit(self) -> None:
        """End the recording and report it. Whatever happens, the interpreter goes on to exit as it would."""
        if forks.origin() != self.process:  # a forked child
            return
        self._report(self._end)
        if type(self.error) is KeyboardInterrupt:
            _let_the_interrupt_end_the_process()

    def _end(self) -> None:
        if self.recording is not None:
            error = self.error if isinstance(self.error, Exception) else None
            self.recording.stop(self.error)
            self.recording.end(error)

    def _conclude(self) -> None:
        if self.recording is not None:
            self.recording.conclude(self._ended_by)

    def _report(self, end: Callable[[], None]) -> None:
        """Make the trace, save it and print the report; once."""
        if not self._reporting.acquire(blocking=False):
            self.reported.wait(SAVING)
            return
        self._reporter = threading.get_ident()
        try:
            with contextlib.suppress(AttributeError, OSError, ValueError, RuntimeError):  # the last as in print_line
                sys.stdout.flush()
            end()
            self._save_and_print()
        except Exception as fault:  # noqa: BLE001 (never the program's exit code)
            print_line(sentence_of_fault("run.failed", fault))
        except KeyboardInterrupt:
            print_line(sentence("run.interrupted"))
        finally:
            self._reporter = 0
            self.reported.set()
            if self._postponed:
                _die_of(self._postponed)

    def _save_and_print(self) -> None:
        if self.recording is None:
            if not self._has_torch:
                print_line(sentence("run.no-torch"))
            return
        trace, report = self.recording.trace, self.recording.report
        if self.rank is None and len(trace.threads) and trace.threads[0].rank >= 0:
            self.rank = trace.threads[0].rank  # known to torch only since the program began
        is_whole = self.rank is None or self._ranks < 2
        if not is_whole:
            report = replace(report, trace=replace(trace, all_clear=False))  # nobody knows of the others yet
        self._print(report)
        if self._is_saved:
            self._write(self._plain_path, sentence("cli.trace"), self.options.saver(trace))
        self._write_reports(report, is_whole=is_whole)
        if self._job is not None and self.rank == 0 and not is_whole:
            ending = "stopped" if self._ended_by else "failed" if self.error is not None else "ended"
            job_report = self._job.report(ending, lambda: self._postponed != 0)
            if job_report is not None:
                self.rank = None
                self._print(job_report)
                self._write_reports(job_report, is_whole=True)

    def _print(self, report: ReportData) -> None:
        from devtrace.report.text import terminal_width, text

        rank_heading = "" if self.rank is None else sentence("run.rank", rank=self.rank)
        heading = rank_heading or (sentence("run.job") if self._ranks > 1 else "")
        print_line("\n".join(["", *filter(None, [heading]), text(report, terminal_width(sys.stderr))]))
        if rank_heading or self._ranks < 2:
            self._hint_without_cuda()

    def _write_reports(self, report: ReportData, *, is_whole: bool) -> None:
        """Write a report in all forms asked for; of one rank of a job only the files of that rank."""
        from devtrace.contract import code_scanning
        from devtrace.contract.entries import entries_of
        from devtrace.contract.forms import Forms

        entries = entries_of(report.findings, self.options.fail_on)
        forms = Forms(report, entries, code_scanning.project_folder(self.folder), self.options.notes, self.error)
        if self.options.html:
            from devtrace.report.page import to_html

            self._write(self.options.html, sentence("cli.report"), lambda path: to_html(report, path))
        for form in forms.files(self.options.json, self.options.sarif):
            self._write(form.path, sentence(form.what), form.write)
        if is_whole:
            self._is_over_limit = any(entry.limit for entry in entries)
            print_line(forms.annotations(), but_not_empty=True)
            print_line(forms.line(self.options.json), sys.stdout, but_not_empty=True)

    def _hint_without_cuda(self) -> None:
        from devtrace.diagnosis.evidence.error_origins import is_lack_of_cuda

        if self.error is not None and is_lack_of_cuda(self.error):
            print_line(sentence("run.no-cuda", code=f"devtrace run --simulate cuda:1 {self.program}"))

    def _exit_as_asked(self) -> None:
        """Run what is registered at exit, then exit with the code of `--fail-on`: at the real exit it is too late."""
        if self.options.fail_on is not None and forks.origin() == self.process:  # not in a forked child
            threading._shutdown()  # type: ignore[attr-defined]
            atexit._run_exitfuncs()
            if self._is_over_limit:
                raise SystemExit(FOUND)

    @property
    def _is_saved(self) -> bool:
        """Return whether to save the trace. Under torchrun all ranks do: only together do they show what happened."""
        return bool(self.options.save) or self.rank is not None

    @property
    def _plain_path(self) -> str:
        return self.options.save or f"{Path(self.program.name).stem}.devtrace"

    def _write(self, path: str, what: str, write: Callable[[Path], object]) -> None:
        print_line(write_somewhere(self.folder, ranked_path(path, self.rank), what, write)[1])

    def _watch_signals(self) -> None:
        """Save before dying of a signal that the program leaves to the system."""
        for number in ENDING:
            if signal.getsignal(number) == signal.SIG_DFL:
                signal.signal(number, self._on_signal)
        if hasattr(os, "register_at_fork"):  # none on Windows, which has no forks
            os.register_at_fork(after_in_child=self._leave_child)
        if not self.has_threads:
            return
        receive, send = socket.socketpair()
        receive.setblocking(True)
        send.setblocking(False)
        signal.set_wakeup_fd(send.fileno(), warn_on_full_buffer=False)
        self._sockets = receive, send
        _thread.start_new_thread(self._wait_for_signal, (receive,))

    def _on_signal(self, number: int, _frame: object) -> None:
        if self._reporter == threading.get_ident() and not self._postponed:
            self._postponed = number  # in the middle of the report, which would wait for itself
            return
        if forks.origin() == self.process:
            self._end_by(number)
        _die_of(number)

    def _end_by(self, number: int) -> None:
        self._ended_by = self._ended_by or sentence("rank.ended", signal=signal.Signals(number).name)
        self._report(self._conclude)

    def _wait_for_signal(self, receive: socket.socket) -> None:
        """Save from this thread if the main one hangs in C and runs no Python handler; then end the process."""
        while received := receive.recv(1):
            number = received[0]
            if number in ENDING and not self.reported.wait(PATIENCE):
                self._end_by(number)
                if signal.getsignal(number) == self._on_signal and not self._postponed:
                    _die_of(number)

    def _leave_child(self) -> None:
        """Record nothing in a child that the program forks, and let signals end it as they would."""
        if forks.is_ours():  # devtrace's own fork, in which the program goes on
            return
        for number in ENDING:
            if signal.getsignal(number) == self._on_signal:
                signal.signal(number, signal.SIG_DFL)
        if self.recording is not None:
            self.recording.abandon()


def _die_of(number: int) -> None:
    """End the process by a signal; `signal.signal` would refuse a thread that is not the main one."""
    ctypes.pythonapi.PyOS_setsig(number, None)
    os.kill(os.getpid(), number)


def _let_the_interrupt_end_the_process() -> None:
    """Set the interpreter's flag that an interrupt ended the program, so that it ends itself by SIGINT.

    Running any text clears the flag (making a namedtuple does); running one that is interrupted sets it.
    """
    with contextlib.suppress(KeyboardInterrupt):
        exec("raise KeyboardInterrupt")
