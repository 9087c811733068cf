"""Runs of a program on simulated devices, in a process of its own, with other texts for some files.

What is told of a notebook's run is the notebook's: lines, cells and edits of its cells.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from devtrace.diagnosis.findings import from_json, with_parts
from devtrace.fixing.host import Asked
from devtrace.fixing.notebooks.run_again import cells_to_run
from devtrace.fixing.notebooks.text import NotebookText
from devtrace.fixing.patch import relative
from devtrace.fixing.program import ProgramRun
from devtrace.fixing.running import Running, started
from devtrace.fixing.source_text import Cell, SourceText
from devtrace.runtime import overlay
from devtrace.runtime.device_spec import NO_REAL_DEVICES
from devtrace.runtime.whole_files import put
from devtrace.source.user_code import owner_of
from devtrace.words.catalogue import sentence
from devtrace.words.errors import UsageError

PATIENCE: Final = 30.0
"""Seconds that a program gets, after SIGTERM at its time limit, to save what was seen."""
_OF_ALL: Final = {**NO_REAL_DEVICES, "PYTHONHASHSEED": "0", "PYTHONUNBUFFERED": "1"}
_DRAWS: Final = {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}
"""As in a kernel of Jupyter's."""


def text_of(file: str) -> SourceText:
    """Read a file that ran."""
    kind = NotebookText if file.endswith(".ipynb") else SourceText
    return kind(file, Path(file).read_bytes())


def _folder() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="devtrace-fix-")


@dataclass
class Runner:
    """A notebook file, absolute, or the words of `devtrace run` after its flags. One run goes on from the last where
    its first change is.

    `start` starts a host in which `position` cells of the program as it is in the first run have run.
    """

    words: tuple[str, ...]
    simulate: str
    timeout: float | None = None
    cell_begins: Callable[[int], None] = lambda number: None  # told the number that a cell gets, before it runs
    start: Callable[[Mapping[str, str], str], Running] | None = None  # with an environment, and a folder to write in
    position: int = 0
    again: list[int] | None = field(default=None, init=False)  # cells before the position that ran in the last run
    is_begun: bool = field(default=False, init=False)  # a run, whose result nobody has taken
    _host: Running | None = field(default=None, init=False)
    _is_closed: bool = field(default=False, init=False)
    _is_late: bool = field(default=False, init=False)
    _has_branched: bool = field(default=False, init=False)
    _count: int = field(default=0, init=False)
    _before: list[Cell] = field(default_factory=list, init=False)
    _last: list[Cell] = field(default_factory=list, init=False)
    _beside: tuple[dict[str, bytes], frozenset[str]] = field(default=({}, frozenset()), init=False)  # in the last run
    _folder: TemporaryDirectory[str] = field(default_factory=_folder, init=False)

    @property
    def path(self) -> str:
        """Return the file whose cells or statements run."""
        return os.path.abspath(self.words[0])

    @property
    def is_notebook(self) -> bool:
        return self.path.endswith(".ipynb")

    def run(
        self, texts: Mapping[str, SourceText], own: frozenset[str] = frozenset(), *, one_device: bool = False
    ) -> ProgramRun:
        """Run the program. What a script raises where it went on is proven from its top, where nothing is left over."""
        self.begin(texts, own, one_device=one_device)
        run = self.result()
        if run.ending == "raised" and run.error is None and self._has_branched:
            self._last = []
            self.begin(texts, own, one_device=one_device)
            run = self.result()
        return run

    def begin(
        self,
        texts: Mapping[str, SourceText],
        own: frozenset[str] = frozenset(),
        again: list[int] | None = None,
        *,
        one_device: bool = False,
    ) -> None:
        """Let the program run, and return at once. `again`: cells before the position that run whatever changed."""
        files = {file: other.data for file, other in texts.items() if file != self.path}
        text = texts.get(self.path) or self._text()
        cells = [*text.cells()]
        of_script = {self.path: text.data} if cells and not self.is_notebook else {}
        overlay.write(self._file("texts"), files | of_script)
        if not self._before:
            self._before, self._last = cells, cells[: self.position]
        self.again = run_again = self._to_run_again(cells, files) if again is None else again
        asked: Asked = {
            "number": self._count,
            "cells": cells,
            "first": _first_change(self._last, cells) if (files, own) == self._beside else 0,
            "again": run_again,
            "own": ",".join(sorted(own)),
            "one_device": one_device,
        }
        self._last, self._beside, self._count = cells, (files, own), self._count + 1
        self.host().ask(str(put(self._file("asked"), json.dumps(asked))))
        self.is_begun = True

    def _text(self) -> SourceText:
        return text_of(self.path) if os.path.isfile(self.path) else SourceText(self.path, b"")

    def _to_run_again(self, cells: list[Cell], files: Mapping[str, bytes]) -> list[int]:
        """Return the cells before the position that have changed, and those that go by them; all if a file has."""
        texts = [each["source"] for each in cells[: self.position]]
        changed = {at for at, text in enumerate(texts) if files or text != self._before[at]["source"]}
        return cells_to_run(texts, changed)

    def result(self) -> ProgramRun:
        """Wait for the end of a run, and of its process."""
        self.is_begun = self._is_late = False
        has_ended, host = threading.Event(), self.host()
        threading.Thread(target=self._end_late, args=(host, has_ended), daemon=True).start()
        told: dict[str, Any] = {}
        try:
            for line in host.answers:
                told |= (said := json.loads(line))
                if "cell" in said:
                    self.cell_begins(said["cell"])
                if "gone" in said:
                    break
            else:
                self._end_host()
            return self._ended(told)
        except BaseException:
            self.close()
            raise
        finally:
            has_ended.set()

    def _end_late(self, host: Running, has_ended: threading.Event) -> None:
        """End what runs beyond the time limit; it may save what was seen."""
        if not has_ended.wait(self.timeout):
            self._is_late = True
            host.terminate()
            if not has_ended.wait(PATIENCE):
                host.end()

    def _ended(self, told: Mapping[str, Any]) -> ProgramRun:
        self._has_branched = told.get("has_branched", False)
        if "fault" in told:
            raise UsageError.of("fix-no-run.fault", fault=told["fault"])
        if "ending" in told:
            run = _run_of(self.path, told)
            return replace(run, ending="time") if self._is_late else run
        if not self._is_late and not self.is_notebook:
            raise UsageError.of("fix-no-run", code=told.get("gone", 1))
        if not self._is_late and "gone" not in told:
            raise UsageError.of("fix-no-run.dead")
        return ProgramRun("time" if self._is_late else "signal", ())

    def close(self) -> None:
        """End for good, whatever another thread waits for."""
        self._is_closed = True
        self._end_host()

    def _end_host(self) -> None:
        host, self._host = self._host, None
        if host is not None:
            host.close()

    def _file(self, name: str) -> Path:
        return Path(self._folder.name) / f"{name}.json"

    def host(self) -> Running:
        """Return the first host, which is started if there is none."""
        if self._host is None:
            own = {overlay.VARIABLE: str(self._file("texts"))}
            self._host = (self.start or self._in_a_process)(own, self._folder.name)
        if self._is_closed:
            self._end_host()
            raise UsageError.of("fix-no-run.dead")
        return self._host

    def _in_a_process(self, own: Mapping[str, str], _: str) -> Running:
        variables = {**os.environ, **_OF_ALL, **own}
        if not self.is_notebook:
            return started((sys.executable, "-m", "devtrace.fixing.script", self.simulate, *self.words), variables)
        command = sys.executable, "-m", "devtrace.fixing.notebooks.host", self.simulate
        return started(command, {**_DRAWS, **variables}, str(Path(self.path).parent))


def _first_change(before: list[Cell], now: list[Cell]) -> int:
    """Return the index of the first cell that is another than in the run before."""
    same = (one == other for one, other in zip(before, now, strict=False))
    return sum(1 for _ in itertools.takewhile(bool, same))


def _run_of(path: str, told: Mapping[str, Any]) -> ProgramRun:
    def in_notebook(part: dict[str, Any]) -> dict[str, Any]:  # a cell is no file of one kernel
        return part | {"file": path} if part.get("cell") is not None else part

    raised, cells = told["raised"], told.get("cells", {})
    traceback = [(file, int(line)) for file, line in raised["lines"]] if raised else []
    return ProgramRun(
        told["ending"],
        tuple(from_json(with_parts(found, in_notebook)) for found in told["findings"]),
        _in_words(raised, cells) if raised else "",
        tuple((path if file in cells else file, cells.get(file), line) for file, line in traceback),
        told["values"],
        told["printed"],
        crossings=told["crossings"],
        peaks=told["peaks"],
    )


def _in_words(raised: Mapping[str, Any], cells: Mapping[str, int]) -> str:
    """Return what a run raised, and the last of its places that is the user's: `KeyError: 'a' (In[3] line 2)`."""
    text = f"{raised['type']}: {raised['message']}".removesuffix(": ")
    for file, line in reversed(raised["lines"]):
        if file in cells or owner_of(file) == "user":
            source = f"In[{cells[file]}]" if file in cells else relative(file)
            return f"{text} ({sentence('fix.place', source=source, line=int(line))})"
    return text
