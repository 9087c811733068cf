"""`devtrace run`: a program, the recording around it, and what is told and saved when it ends - however it ends.

Recording begins when the program has imported torch (what it sets in the environment before that still counts) and
ends with the last of what is registered at exit, so threads that outlive the script are in the trace. A process that is
ended by SIGTERM or SIGHUP saves first and then dies of the signal. Whatever goes wrong here is a sentence on stderr;
the exit code is the program's.
"""

from __future__ import annotations

import _thread
import atexit
import contextlib
import os
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from devtrace.cli.progress import Progress
from devtrace.cli.run_program import Program, print_as_its_own
from devtrace.runtime.import_hook import ImportWatcher
from devtrace.runtime.job import rank_of_job, ranked_path
from devtrace.words.errors import DevtraceError

if TYPE_CHECKING:
    from devtrace.api.recording import record

PATIENCE: Final = 2.0
"""Seconds that the main thread gets to answer a signal; a thread that hangs in a collective never would, and torchrun
kills 30 s after its SIGTERM."""
ENDING: Final = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


@dataclass(frozen=True)
class Options:
    """What is asked of a run."""

    simulate: str | None = None
    max_ops: int = 100_000
    save: str | None = None
    html: str | None = None
    expect: str | None = None


class Launch:
    """One program under recording."""

    def __init__(self, program: Program, options: Options) -> None:
        self.program = program
        self.options = options
        self.rank = rank_of_job()
        self.process = os.getpid()
        self.folder = Path.cwd()  # to which paths are relative, wherever the program goes
        self.recording: record | None = None
        self.error: BaseException | None = None
        self.told = threading.Event()
        self._telling = threading.Lock()
        self._namespace: dict[str, Any] = {}
        self._progress: Progress | None = None

    def run(self) -> None:
        """Run the program; its exception or exit passes through."""
        self._warn_of_bad_paths()
        main, run = self.program.prepare()
        self._namespace = main.__dict__
        atexit.register(self._at_exit)
        self._watch_signals()
        try:
            ImportWatcher("torch").call_when_imported(self._start)
            run()
        except BaseException as error:
            self.error = error
            print_as_its_own(error)
            raise

    def _start(self) -> None:
        from devtrace.api.recording import record

        options = self.options
        recording = record(
            options.simulate,
            max_ops=options.max_ops,
            name=self.program.name,
            expect=options.expect,
            namespace=self._namespace,
        )
        recording.__enter__()
        self.recording = recording
        self._progress = Progress.on_terminal(recording.counter())

    def _at_exit(self) -> None:
        """End the recording and tell of it. Whatever happens, the interpreter goes on to exit as it would."""
        if os.getpid() != self.process:
            return
        self._tell(self._end)
        if type(self.error) is KeyboardInterrupt:
            _still_die_of_the_interrupt()

    def _end(self) -> None:
        if self.recording is not None:
            error = self.error if isinstance(self.error, Exception) else None
            self.recording.__exit__(type(error) if error else None, error, error.__traceback__ if error else None)

    def _conclude(self) -> None:
        if self.recording is not None:
            self.recording.conclude()

    def _tell(self, end: Callable[[], None]) -> None:
        """Once: make the trace, save it, print the report."""
        if not self._telling.acquire(blocking=False):
            self.told.wait(PATIENCE)
            return
        try:
            self._stop_progress()
            _flush(sys.stdout)
            end()
            self._save_and_print()
        except Exception as fault:  # noqa: BLE001 (never the program's exit code)
            _say(f"devtrace: the report could not be made ({type(fault).__name__}: {fault})")
        except KeyboardInterrupt:
            _say("devtrace: interrupted while it told of the program; what is not named above is not saved")
        finally:
            self.told.set()

    def _stop_progress(self) -> None:
        if self._progress is not None:
            self._progress.stop()

    def _save_and_print(self) -> None:
        if self.recording is None:
            _say("devtrace: the program did not import torch, so there is nothing to report")
            return
        trace, report = self.recording.trace, self.recording.report
        told = [f"rank {self.rank}:"] if self.rank is not None else []
        _say("\n".join(["", *told, report.text]))
        if self._save_path:
            self._write(self._save_path, "trace", trace.save)
        if self._html_path:
            from devtrace.report.page import to_html

            self._write(self._html_path, "report", lambda path: to_html(report, path))

    @property
    def _save_path(self) -> Path | None:
        """Under torchrun every rank saves, asked or not: only together do they tell what happened."""
        if self.options.save:
            return ranked_path(self.options.save, self.rank)
        return None if self.rank is None else ranked_path(f"{Path(self.program.name).stem}.devtrace", self.rank)

    @property
    def _html_path(self) -> Path | None:
        return ranked_path(self.options.html, self.rank) if self.options.html else None

    def _write(self, path: Path, what: str, write: Callable[[Path], object]) -> None:
        reason = _written(self.folder / path, write)
        if reason is None:
            _say(f"devtrace: the {what} is in {path}")
            return
        spare = Path(tempfile.gettempdir()) / f"{path.stem}-{self.process}{path.suffix}"
        lost = _written(spare, write)
        where = "it is lost" if lost else f"it is in {spare} instead"
        _say(f"devtrace: the {what} could not be written to {path} ({reason}); {where}")

    def _warn_of_bad_paths(self) -> None:
        """Say it before hours of training, not after."""
        for path in filter(None, (self._save_path, self._html_path)):
            folder = path.parent
            if not folder.is_dir() or not os.access(path if path.exists() else folder, os.W_OK):
                _say(f"devtrace: {path} cannot be written as things are; the program runs all the same")

    def _watch_signals(self) -> None:
        """Save before dying of a signal that the program leaves to the system."""
        receive, send = socket.socketpair()
        receive.setblocking(True)
        send.setblocking(False)
        for number in ENDING:
            if signal.getsignal(number) == signal.SIG_DFL:
                signal.signal(number, self._on_signal)
        signal.set_wakeup_fd(send.fileno(), warn_on_full_buffer=False)
        self._sockets = receive, send
        os.register_at_fork(after_in_child=self._leave_child)
        _thread.start_new_thread(self._wait_for_signal, (receive,))

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() == self.process:
            self._tell(self._conclude)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def _wait_for_signal(self, receive: socket.socket) -> None:
        """The main thread may hang in C, where no Python handler runs: save from here then."""
        while received := receive.recv(1):
            if received[0] in ENDING and not self.told.wait(PATIENCE):
                self._tell(self._conclude)

    def _leave_child(self) -> None:
        """A forked child is not recorded, and dies of signals as it would."""
        for number in ENDING:
            if signal.getsignal(number) == self._on_signal:
                signal.signal(number, signal.SIG_DFL)
        if self.recording is not None:
            self.recording.abandon()


def _written(path: Path, write: Callable[[Path], object]) -> str | None:
    """Write a file whole or not at all; the reason if that failed."""
    beside = path.with_name(f"{path.name}.part")
    target = beside if not path.exists() or path.is_file() else path
    try:
        write(target)
        if target is beside:
            os.replace(beside, path)
    except OSError as error:
        if target is beside:
            beside.unlink(missing_ok=True)
        return error.strerror or str(error)
    except DevtraceError as error:
        return str(error)
    return None


def _still_die_of_the_interrupt() -> None:
    """The interpreter remembers in a flag that an interrupt ended the program, to end itself by SIGINT. Running any
    text (a namedtuple does, when it is made) clears the flag, and running one that is interrupted sets it.
    """
    with contextlib.suppress(KeyboardInterrupt):
        exec("raise KeyboardInterrupt")


def _say(text: str) -> None:
    """Print to stderr, which may be closed, or not take every character."""
    stream = sys.stderr
    try:
        encoding = getattr(stream, "encoding", None) or "utf-8"
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
        stream.flush()
    except RuntimeError:  # a signal came in the middle of the program's own write to stderr
        with contextlib.suppress(OSError):
            os.write(2, text.encode("utf-8", "backslashreplace") + b"\n")
    except (AttributeError, OSError, ValueError):
        return


def _flush(stream: Any) -> None:
    try:
        stream.flush()
    except (AttributeError, OSError, ValueError, RuntimeError):  # the last as in _say
        return
