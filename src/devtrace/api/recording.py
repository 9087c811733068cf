"""`devtrace.record`, also of a traced cell and the command line: simulate, record, diagnose."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from devtrace.api.environment import is_simulated, running_simulation
from devtrace.api.options import MAX_OPS, checked_budget
from devtrace.api.results import Report, Trace, diagnose
from devtrace.features import need
from devtrace.runtime.interrupts import no_collecting
from devtrace.runtime.rank import rank_of_job, ranked_path
from devtrace.runtime.requirements import sentence_of_fault, untested
from devtrace.runtime.simulated import simulate
from devtrace.runtime.tracebacks import hide_our_frames, text_of
from devtrace.runtime.watching import missed
from devtrace.runtime.whole_files import write_somewhere
from devtrace.source.snapshot import Snapshot
from devtrace.trace.builder import TraceBuilder
from devtrace.words.catalogue import sentence
from devtrace.words.errors import UsageError, named
from devtrace.words.text_format import one_line

if TYPE_CHECKING:
    from devtrace.recording.columns.recorded_ops import Sampler
    from devtrace.recording.hot.recorder import Recorder
    from devtrace.recording.progress import Counter, Growth
    from devtrace.recording.recording import Recording


_watchers: list[Callable[[str, record], None]] = []


def watch(watcher: Callable[[str, record], None]) -> Callable[[], None]:
    """Call `watcher("began", recording)` and `("ended", recording)` for every recording of this process.

    The returned function ends that. At "ended" a recording still answers `counter` and `growth`.
    """
    _watchers.append(watcher)
    return lambda: _watchers.remove(watcher) if watcher in _watchers else None


def _notify(what: str, recording: record) -> None:
    for watcher in list(_watchers):
        try:
            watcher(what, recording)
        except Exception as fault:  # noqa: BLE001 (whoever it is, the recording goes on)
            _watchers.remove(watcher)
            sys.stderr.write(sentence("magic.view-dropped", fault=named(fault)) + "\n")


class record:  # noqa: N801 (used as a function: `with devtrace.record():`)
    """Record what the block does.

    If the block raises an exception, `record` does not catch or change the exception.

        simulate="cuda:2"     run the block on two simulated GPUs
        max_ops=1000          keep at most 1000 ops; for repeated ops beyond 1000, keep only the counts
        name="step"           give the trace a name
        expect="cuda:0"       report the tensors in the block's computation that are not on cuda:0
        namespace=vars()      name tensors in the report by these variables (by default, by the caller's globals)
        budget=0.1            record only some of the repeated steps, so that the block takes only about 10% longer
        save="run.devtrace"   save the trace in this file; in a distributed job, rank 0 saves run.rank0.devtrace
        memory=True           list what held each simulated GPU's memory when the most memory was in use
    """

    def __init__(
        self,
        simulate: str | int | None = None,
        *,
        max_ops: int = MAX_OPS,
        name: str = "",
        expect: str | None = None,
        namespace: Mapping[str, Any] | None = None,
        budget: float | None = None,
        save: str | Path | None = None,
        memory: bool = False,
    ) -> None:
        self.name = name
        self._memory = memory
        self._budget = checked_budget(budget)
        self._report: Report | None = None
        self._simulate = simulate
        self._max_ops = max_ops
        self._expect = expect
        self._namespace = namespace
        self._save_path = None if save is None else Path(save)
        self._folder = Path.cwd()  # to which the path is relative, wherever the program goes
        self._stack = ExitStack()
        self._simulated = False
        self._recording: Recording | None = None  # until its trace is made
        self._running: Recording | None = None  # until it is taken out
        self._notes: tuple[str, ...] = ()

    @property
    def trace(self) -> Trace:
        return self._result("trace").trace

    @property
    def report(self) -> Report:
        return self._result("report")

    def _result(self, what: str) -> Report:
        if self._report is None:
            raise UsageError.of("recording-not-ended", what=what)
        return self._report

    def counter(self) -> Counter | None:
        """Return a counter of ops for another thread; None before it began and after it ended."""
        from devtrace.recording.progress import Counter

        recording = self._recording
        return Counter(recording.recorder) if recording is not None else None

    @property
    def empty(self) -> bool:
        return self._recording is None or self._recording.empty

    def growth(self) -> Growth | None:
        """Return a reader of the ops as they come, for another thread; None before it began and after it ended."""
        from devtrace.recording.progress import Growth

        recording = self._recording
        return Growth(recording.recorder) if recording is not None else None

    def is_simulated(self, device: str) -> bool:
        return (self._simulated and device.partition(":")[0] == "cuda") or is_simulated(device)

    def abandon(self) -> None:
        """Record nothing more: a forked child leaves the trace to its parent."""
        if self._recording is not None:
            self._recording.recorder.active = False

    def discard(self) -> None:
        """End without a trace."""
        self._recording = None
        self.end()

    def _repr_mimebundle_(self, *_: object, **__: object) -> tuple[dict[str, Any], dict[str, Any]]:
        """A recording that a cell ends with shows its report."""
        if self._report is not None:
            return self._report._repr_mimebundle_()
        return {"text/plain": str(self)}, {}

    def __str__(self) -> str:
        if self._report is not None:
            return str(self._report)
        return sentence("record.running" if self._recording is not None else "record.not-begun")

    def __repr__(self) -> str:
        return f"<record: {self._report!r}>" if self._report is not None else f"<record: {self}>"

    def __enter__(self) -> record:
        from devtrace.recording.recording import Recording

        if self._namespace is None:
            self._namespace = sys._getframe(1).f_globals
        with ExitStack() as stack:
            if self._simulate:
                stack.enter_context(simulate(self._simulate))
            self._simulated = running_simulation() is not None
            recording = Recording(self._max_ops, self._namespace, self._sampler(), {"memory": self._memory})
            recording.start()
            self._recording = self._running = recording
            self._stack = stack.pop_all()
        _notify("began", self)
        return self

    def _sampler(self) -> Callable[[Recorder], Sampler] | None:
        return None if self._budget is None else partial(need("sampler", "budget"), share=self._budget)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.end(error)

    def stop(self, error: BaseException | None = None) -> None:
        """Take the recorder out and make its trace; devices that are simulated for it stay until `end`."""
        if self._running is None:
            return
        self._running.stop()
        self._running = None
        _notify("ended", self)
        if self._recording is not None:
            self._finish(error)

    @no_collecting()
    def end(self, error: BaseException | None = None) -> None:
        """Take the recording out and make its trace; `error` is what ended the program."""
        with self._stack:  # simulated tensors answer for their device as long as the simulation runs
            self.stop(error)
        if error is not None:
            hide_our_frames(error)

    def conclude(self, note: str = "") -> None:
        """Make the trace and report of what there is, from any thread: a process ended by a signal leaves no block."""
        assert self._recording is not None
        self._notes = (note,) if note else ()
        self._recording.halt()
        self._finish(None, "interrupted")

    @no_collecting()
    def _finish(self, error: BaseException | None, outcome: str = "") -> None:
        outcome = outcome or outcome_of(error)
        assert self._recording is not None
        recording, self._recording = self._recording, None
        self._simulated |= running_simulation() is not None
        faults = missed()
        self._notes = (*self._notes, *_notes_of_torch(recording), *faults)
        try:
            result = recording.finish(self.name, error, self.is_simulated)
        except Exception as fault:  # noqa: BLE001 (a failing recorder is never the user's exception)
            builder = TraceBuilder(self.name)
            builder.notes.append(sentence_of_fault("note.recording-lost", fault))
            self._report = diagnose(builder.build())
        else:
            notes = result.trace.notes
            faults += [note for note in notes if note.startswith(("note.op-in-part", "note.call-missed"))]
            advice = [untested()] if faults and untested() else []
            all_notes = (*map(_sentence_of_note, notes), *self._notes, *advice)
            trace = replace(result.trace, notes=all_notes, outcome=outcome)
            self._report = _report_of(Trace.of(trace), result.snapshot, self._expect)
        if self._save_path is not None:
            _save(self._report.trace, self._folder, self._save_path)


def outcome_of(error: BaseException | None) -> str:
    """Return `ended`, `interrupted` or `failed: ValueError: ...` for what ended a program."""
    if error is None or (type(error) is SystemExit and not error.code):
        return "ended"
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    return one_line(f"failed: {type(error).__name__}: {text_of(error)}")


def _sentence_of_note(note: str) -> str:
    """Return the sentence of a note: the recorder keeps its key, and what it is about."""
    key, _, values = note.partition("\t")
    return sentence(key, **json.loads(values or "{}"))


def _report_of(trace: Trace, snapshot: Snapshot, expect: str | None) -> Report:
    """Diagnose while the program's objects are there."""
    try:
        report = diagnose(trace, snapshot)
        if expect:
            from devtrace.api.expectation_check import with_expectation

            report = with_expectation(report, expect)
    except Exception as fault:  # noqa: BLE001 (a failing diagnosis is never the user's exception)
        note = sentence_of_fault("note.diagnosis-failed", fault)
        noted = replace(trace, notes=(*trace.notes, note))
        report = Report(noted, notes=noted.notes)
    return report


def _save(trace: Trace, relative_to: Path, path: Path) -> None:
    """Save a trace under its rank's name; where that fails, in a spare file, and say so on stderr."""
    rank = trace.threads[0].rank if len(trace.threads) else -1
    path_of_rank = ranked_path(path, rank if rank >= 0 else rank_of_job())
    is_as_asked, message = write_somewhere(relative_to, path_of_rank, sentence("cli.trace"), trace.save)
    if not is_as_asked:
        sys.stderr.write(f"{message}\n")


def _notes_of_torch(recording: Recording) -> list[str]:
    """Return what is lost on this torch, and what packages remember of a time without devices."""
    from devtrace.runtime.torch_names import note_without

    simulation = running_simulation()
    left_out = recording.left_out | (simulation.left_out if simulation else {})
    remembered = [sentence("note.kept-answer", fault=name) for name in (simulation.kept_answers if simulation else ())]
    return [*remembered, *(note_without(part, fault) for part, fault in left_out.items())]
