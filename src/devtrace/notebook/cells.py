"""Tracing of one notebook: which cells are traced, the one that is traced now, and the traces kept.

`magic` drives it from IPython's events, `panel` from the sidebar. It is the one that knows, both only read it:

    tracing.switch(on=True); tracing.on         every following cell
    tracing.requested.add(cell_id)              the next run of one cell
    tracing.simulate("cuda:2")                  pretended devices for the whole session
    tracing.history.find("7")                   by name or execution count
    stop = tracing.observe(changed)             changed(what, traced): "began", "finished", "switched", "fixing"
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from devtrace.api.options import MAX_OPS, Options
from devtrace.features import offered
from devtrace.notebook import left_on_devices
from devtrace.runtime.device_spec import spec_of
from devtrace.runtime.import_hook import ImportWatcher
from devtrace.runtime.simulated import Simulation, simulate
from devtrace.words.catalogue import sentence
from devtrace.words.errors import UsageError, named

if TYPE_CHECKING:
    from devtrace.api.recording import record as Recording  # noqa: N812
    from devtrace.api.results import Report, Trace
    from devtrace.recording.progress import Counter, Counts
    from devtrace.trace.tables import TraceData

Observer = Callable[[str, "Traced | None"], None]

IPYTHONS_NAMES: Final = frozenset({"In", "get_ipython", "exit", "quit", "open"})


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell's code as it runs: the file name it goes by, and the line of the cell that its line 1 is.

    `first` is 0 if the code is no part of the cell's text (`%time f()`): then the line that runs it counts instead.
    """

    file: str
    code: str
    count: int | None = None
    id: str = ""
    first: int = 1

    @property
    def label(self) -> str:
        return f"In[{self.count}]" if self.count is not None else "cell"


@dataclass(frozen=True, slots=True)
class Traced:
    """A cell that was traced to its end."""

    name: str
    cell: Cell
    trace: Trace
    report: Report

    @property
    def label(self) -> str:
        return f"{self.cell.label} {self.name}".rstrip()

    def without_case(self) -> Traced:
        trace = replace(self.trace, case=None)
        return replace(self, trace=trace, report=replace(self.report, trace=trace))


class History:
    """Keeps the last traces, newest last: at most `most` of them and `most_bytes` of columns, but always the newest.

    Of the newest it keeps the case too, which may take 20 MB.
    """

    most = 50
    most_bytes = 256 << 20

    def __init__(self) -> None:
        self._kept: dict[int, tuple[Traced, int]] = {}
        self._last_number = 0

    def add(self, traced: Traced) -> None:
        if self._last_number in self._kept:
            older, size = self._kept[self._last_number]
            self._kept[self._last_number] = (older.without_case(), size)
        self._last_number += 1
        self._kept[self._last_number] = (traced, _size_in_memory(traced.trace))
        while len(self._kept) > 1 and (len(self._kept) > self.most or self.bytes > self.most_bytes):
            del self._kept[min(self._kept)]

    @property
    def numbered(self) -> dict[int, Traced]:
        """Return the traces by number; the first trace of a session was 1, and no number is used again."""
        return {number: traced for number, (traced, _) in list(self._kept.items())}

    def find(self, key: str = "") -> Traced | None:
        """Return the newest trace of this name or execution count; without a key the newest of all."""
        number = key.removeprefix("In[").removesuffix("]")
        named = [traced for traced in self if not key or key == traced.name]
        counted = [traced for traced in self if number == str(traced.cell.count)]
        return next(reversed(named or counted), None)

    def labels(self) -> list[str]:
        return [traced.label for traced in self]

    @property
    def bytes(self) -> int:
        return sum(size for _, size in self._kept.values())

    def __iter__(self) -> Iterator[Traced]:
        return iter(self.numbered.values())


def _size_in_memory(trace: Trace) -> int:
    columns = [column for table in trace.values.values() for column in table.values()]
    arrays = [column.nbytes if hasattr(column, "nbytes") else column.flat.nbytes for column in columns]
    return sum(arrays) + sum(map(len, trace.strings))


@dataclass(slots=True)
class CellRun:
    """A cell that is being traced; `recording` is None as long as torch is not imported."""

    cell: Cell
    options: Options
    is_requested: bool
    thread: int = field(default_factory=threading.get_ident)
    began: float = field(default_factory=monotonic)
    recording: Recording | None = None
    fault: Exception | None = None
    _counter: Counter | None = None

    def counts(self) -> Counts | None:
        """Count the ops so far, from another thread; None while nothing is recorded."""
        if self._counter is None and self.recording is not None:
            self._counter = self.recording.counter()
        return self._counter.look() if self._counter is not None else None

    def finish(self, error: BaseException | None) -> Traced | None:
        """End the recording. A cell without ops that nobody asked for gives no trace (0.15 ms, not 1)."""
        recording = self.recording
        if recording is None or (recording.empty and error is None and not self.is_requested):
            self.abandon()
            return None
        try:
            recording.end(error)
        except BaseException:
            self.abandon()
            raise
        return Traced(self.options.name, self.cell, recording.trace, recording.report)

    def abandon(self) -> None:
        if self.recording is not None:
            self.recording.discard()


class Tracing:
    """State of one notebook session. At most one cell is traced at a time."""

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self.on = False  # every cell is traced
        self.run: CellRun | None = None  # the cell that is traced now
        self.simulated = ""
        self.max_ops = MAX_OPS
        self.history = History()
        self.requested: set[str] = set()
        self.namespace = namespace
        self.torch = ImportWatcher("torch")
        self._simulation: Simulation | None = None
        self._observers: list[Observer] = []
        self.ran: dict[str, tuple[str, str]] = {}  # label and text of the cells so far, by id, first run first
        self.raised: dict[str, str] = {}  # by id, empty where a cell raised nothing
        self.took: dict[str, float] = {}  # seconds, by id, of those that have ended
        self.companions: dict[str, Any] = {name: kind(self) for name, kind in offered("notebook").items()}

    def names_of_user(self) -> dict[str, Any]:
        """Return the user's own names, and the results that the notebook keeps in Out."""
        names = {name: value for name, value in list(self.namespace.items()) if not name.startswith("_")}
        return {name: value for name, value in names.items() if name not in IPYTHONS_NAMES}

    @property
    def running(self) -> set[str]:
        """Return the cells that run: one, or those that await."""
        return self.ran.keys() - self.took.keys()

    # The session.

    def close(self) -> None:
        self.abandon()
        for companion in self.companions.values():
            companion.close()
        self.stop_simulating()
        self.on = False
        self.torch.cancel_all()  # what waited for torch's import

    def register_cell(self, cell: Cell) -> None:
        """Let sites in this cell's code say which cell and line they are."""
        self.torch.call_when_imported(lambda: _register_cell(cell))

    def adopt_cells(self, cells: Iterable[Cell]) -> None:
        """Let sites in the code of cells that ran before say which cell and line they are."""
        earlier = list(cells)
        self.torch.call_when_imported(lambda: _adopt_cells(earlier))

    def switch(self, *, on: bool) -> None:
        """Trace every following cell, or only those that are asked for."""
        self.on = on
        self.notify("switched")

    def take_request(self, cell: Cell) -> bool:
        """Return whether a trace of this cell was requested, and forget that: a request is for one run."""
        requested = cell.id in self.requested
        self.requested.discard(cell.id)
        return requested

    def simulate(self, devices: str) -> None:
        """Pretend `devices` ("cuda:2", "2") until `stop_simulating`."""
        devices = spec_of(devices)
        simulation = simulate(devices)
        self.stop_simulating()
        self._step_aside("%devtrace simulate")
        simulation.start()
        self._simulation, self.simulated = simulation, devices
        self.notify("switched")

    def stop_simulating(self) -> None:
        if self._simulation is not None:
            self._step_aside("%devtrace simulate off")
            self._simulation.stop()
            self._simulation, self.simulated = None, ""
            self.notify("switched")

    def join_devices(self) -> None:
        """Make one memory of all devices from here on."""
        if self._simulation is not None:
            self._simulation.join()

    def observe(self, observer: Observer) -> Callable[[], None]:
        """Call `observer` at every change; the returned function ends that."""
        self._observers.append(observer)
        return lambda: self._observers.remove(observer) if observer in self._observers else None

    def observe_alone(self, observer: Observer) -> None:
        """Call `observer` at every change, and nobody else: in a fork no thread of theirs is left."""
        self._observers[:] = [observer]

    def notify(self, what: str, traced: Traced | None = None) -> None:
        for observer in list(self._observers):
            try:
                observer(what, traced)
            except Exception as fault:  # noqa: BLE001 (whoever it is, the cell's trace goes on)
                self._observers.remove(observer)
                sys.stderr.write(sentence("magic.view-dropped", fault=named(fault)) + "\n")

    # One cell.

    def begin(self, cell: Cell, options: Options, *, is_requested: bool = False) -> None:
        """Trace from here to `finish` in this thread; where torch is not imported, from its import on.

        `is_requested`: a `%%devtrace` or a button asks for this trace, which nothing else may cut short.
        """
        options.check_files()
        self._step_aside("%%devtrace")
        self.run = CellRun(cell, options, is_requested)
        try:
            if options.simulate or self.torch.is_imported:
                self._record()
            else:
                self.torch.call_when_imported(self._record_on_import)
        except BaseException:
            self.abandon()
            raise
        self.notify("began")

    def finish(self, error: BaseException | None = None) -> Traced | None:
        """End the recording; None where torch was not imported."""
        run = self._take_run()
        traced = run.finish(error) if run is not None else None
        if run is not None and traced is not None and (note := self._note_on_devices(traced.trace, run.options, error)):
            from devtrace.api.results import with_note

            report = with_note(traced.report, note)
            traced = replace(traced, trace=report.trace, report=report)
        if traced is not None and len(traced.trace.ops):
            self.history.add(traced)
        self.notify("finished", traced)
        if run is not None and run.fault is not None:
            raise run.fault
        return traced

    def keep(self, traced: Traced) -> None:
        """Keep the report of a cell that was explained without being traced."""
        self.history.add(traced)
        self.notify("finished", traced)

    def _note_on_devices(self, trace: TraceData, options: Options, error: BaseException | None) -> str:
        """Say how to get devices, which names are on those that ended with the cell, or that it used none; else ""."""
        if error is not None and (hint := left_on_devices.hint_without_cuda(error)):
            return hint
        if not options.simulate or self.simulated:
            return ""
        note = left_on_devices.sentence_on_ended(self.names_of_user, options.simulate)
        return note or left_on_devices.sentence_on_none(trace, options.simulate)

    def abandon(self) -> None:
        """End the recording, if there is one, and forget it."""
        run = self._take_run()
        if run is not None:
            run.abandon()
            self.notify("finished")

    def _step_aside(self, what: str) -> None:
        """End the running trace if only `switch` asked for it; raise if a user did, or if it is another thread's."""
        if self.run is None:
            return
        if self.run.is_requested or self.run.thread != threading.get_ident():
            raise UsageError.of("nested-trace", what=what)
        self.abandon()

    def _record(self) -> None:
        from devtrace.api.recording import record

        assert self.run is not None
        options = self.run.options
        recording = record(
            simulate=options.simulate if options.simulate != self.simulated else None,
            name=options.name or self.run.cell.label,
            namespace=self.namespace,
            **options.of_recording,
        )
        # Before it begins, so that `abandon` ends it if its beginning fails.
        self.run.recording = recording
        recording.__enter__()

    def _record_on_import(self) -> None:
        """Begin to record inside of the cell's `import torch`, where no exception of ours may be raised."""
        if self.run is None or self.run.thread != threading.get_ident():
            return
        try:
            self._record()
        except Exception as fault:  # noqa: BLE001 (kept for `finish`, which raises it)
            self.run.fault = fault

    def _take_run(self) -> CellRun | None:
        run, self.run = self.run, None
        self.torch.cancel(self._record_on_import)
        return run


def _register_cell(cell: Cell) -> None:
    from devtrace.recording.columns import sites

    if cell.first:
        sites.register_cell(cell.file, -1 if cell.count is None else cell.count, cell.id, cell.code, cell.first)
    else:
        sites.forget_cell(cell.file)


def _adopt_cells(cells: Iterable[Cell]) -> None:
    from devtrace.recording.columns import sites
    from devtrace.source.live_objects import CellText

    sites.adopt_cells(CellText(cell.file, cell.count or 0, cell.id, cell.code, cell.first) for cell in cells)
