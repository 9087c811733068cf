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
from devtrace.fixing.host import RunRequest
from devtrace.fixing.notebooks.run_again import cells_to_run
from devtrace.fixing.notebooks.text import NotebookText
from devtrace.fixing.patch import relative
from devtrace.fixing.program import ProgramRun
from devtrace.fixing.running import Running, launch
from devtrace.fixing.source_text import Cell, SourceText
from devtrace.runtime import overlay
from devtrace.runtime.device_spec import NO_REAL_DEVICES
from devtrace.runtime.whole_files import put
from devtrace.source.user_code import owner_of
from devtrace.words.catalogue import sentence
from devtrace.words.errors import UsageError

PATIENCE: Final = 30.0
"""Seconds that a program gets, after SIGTERM at its time limit, to save what was seen."""
_VARIABLES: Final = {**NO_REAL_DEVICES, "PYTHONHASHSEED": "0", "PYTHONUNBUFFERED": "1"}
_INLINE_FIGURES: Final = {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}
"""As in a kernel of Jupyter's."""


def text_of(file: str) -> SourceText:
    """Read a file that ran: a notebook or a Python file."""
    kind = NotebookText if file.endswith(".ipynb") else SourceText
    return kind(file, Path(file).read_bytes())


def _folder() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="devtrace-fix-")


@dataclass
class Runner:
    """Runs one program several times. Each run goes on from the last one, at the first cell or statement that changed.

    `words` are a notebook's absolute path, or those of `devtrace run` after its flags. `start` starts a host in which
    the first `position` cells have run already.
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
    _first_cells: list[Cell] = field(default_factory=list, init=False)
    _last_cells: list[Cell] = field(default_factory=list, init=False)
    _last_files: tuple[dict[str, bytes], frozenset[str]] = field(default=({}, frozenset()), init=False)
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
        """Run the program; a script that went on from an earlier run and raised runs once more from its top."""
        self.begin(texts, own, one_device=one_device)
        run = self.result()
        if run.ending == "raised" and run.error is None and self._has_branched:
            self._last_cells = []
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
        """Start a run, and return at once. `again`: cells before the position to run; None: those that changed."""
        files = {file: source.data for file, source in texts.items() if file != self.path}
        text = texts.get(self.path) or self._text()
        cells = [*text.cells()]
        script = {self.path: text.data} if cells and not self.is_notebook else {}
        overlay.write(self._file("texts"), files | script)
        if not self._first_cells:
            self._first_cells, self._last_cells = cells, cells[: self.position]
        self.again = repeated = self._cells_to_repeat(cells, files) if again is None else again
        request: RunRequest = {
            "number": self._count,
            "cells": cells,
            "first": _first_change(self._last_cells, cells) if (files, own) == self._last_files else 0,
            "again": repeated,
            "own": ",".join(sorted(own)),
            "one_device": one_device,
        }
        self._last_cells, self._last_files, self._count = cells, (files, own), self._count + 1
        self.host().ask(str(put(self._file("asked"), json.dumps(request))))
        self.is_begun = True

    def _text(self) -> SourceText:
        return text_of(self.path) if os.path.isfile(self.path) else SourceText(self.path, b"")

    def _cells_to_repeat(self, cells: list[Cell], files: Mapping[str, bytes]) -> list[int]:
        """Return which cells before the position have changed or depend on such; all of them if a file has changed."""
        texts = [cell["source"] for cell in cells[: self.position]]
        changed = {index for index, text in enumerate(texts) if files or text != self._first_cells[index]["source"]}
        return [index for index in cells_to_run(texts, changed) if not cells[index]["may_fail"]]

    def result(self) -> ProgramRun:
        """Wait until a run and its process have ended; return what it found."""
        self.is_begun = self._is_late = False
        has_ended, host = threading.Event(), self.host()
        threading.Thread(target=self._end_late, args=(host, has_ended), daemon=True).start()
        result: dict[str, Any] = {}
        try:
            for line in host.answers:
                result |= (answer := json.loads(line))
                if "cell" in answer:
                    self.cell_begins(answer["cell"])
                if "gone" in answer:
                    break
            else:  # no more answers: the host is gone
                self._end_host()
            return self._to_program_run(result)
        except BaseException:
            self.close()
            raise
        finally:
            has_ended.set()

    def _end_late(self, host: Running, has_ended: threading.Event) -> None:
        """End a run at the time limit: first by SIGTERM, so that it can save what was seen."""
        if not has_ended.wait(self.timeout):
            self._is_late = True
            host.terminate()
            if not has_ended.wait(PATIENCE):
                host.end()

    def _to_program_run(self, result: Mapping[str, Any]) -> ProgramRun:
        self._has_branched = result.get("has_branched", False)
        if "fault" in result:
            raise UsageError.of("fix-no-run.fault", fault=result["fault"])
        if "ending" in result:
            run = _read_run(self.path, result)
            return replace(run, ending="time") if self._is_late else run
        if not self._is_late and not self.is_notebook:
            raise UsageError.of("fix-no-run", code=result.get("gone", 1))
        if not self._is_late and "gone" not in result:
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
        """Return the first host; start it if there is none."""
        if self._host is None:
            variables = {overlay.VARIABLE: str(self._file("texts"))}
            self._host = (self.start or self._start_process)(variables, self._folder.name)
        if self._is_closed:
            self._end_host()
            raise UsageError.of("fix-no-run.dead")
        return self._host

    def _start_process(self, more_variables: Mapping[str, str], _: str) -> Running:
        variables = {**os.environ, **_VARIABLES, **more_variables}
        if not self.is_notebook:
            return launch((sys.executable, "-m", "devtrace.fixing.script", self.simulate, *self.words), variables)
        command = sys.executable, "-m", "devtrace.fixing.notebooks.host", self.simulate
        return launch(command, {**_INLINE_FIGURES, **variables}, str(Path(self.path).parent))


def _first_change(before: list[Cell], now: list[Cell]) -> int:
    """Return the index of the first cell that differs from the run before."""
    same = (cell == cell_now for cell, cell_now in zip(before, now, strict=False))
    return sum(1 for _ in itertools.takewhile(bool, same))


def _read_run(path: str, result: Mapping[str, Any]) -> ProgramRun:
    def in_notebook(part: dict[str, Any]) -> dict[str, Any]:  # a cell's own file name is known to its kernel alone
        return part | {"file": path} if part.get("cell") is not None else part

    raised, cells = result["raised"], result.get("cells", {})
    traceback = [(file, int(line)) for file, line in raised["lines"]] if raised else []
    return ProgramRun(
        result["ending"],
        tuple(from_json(with_parts(finding, in_notebook)) for finding in result["findings"]),
        _error_in_words(raised, cells) if raised else "",
        tuple((path if file in cells else file, cells.get(file), line) for file, line in traceback),
        result["values"],
        result["printed"],
        crossings=result["crossings"],
        peaks=result["peaks"],
    )


def _error_in_words(raised: Mapping[str, Any], cells: Mapping[str, int]) -> str:
    """Return `KeyError: 'a' (In[3] line 2)`: the exception, and the last line of user code that it passed."""
    text = f"{raised['type']}: {raised['message']}".removesuffix(": ")
    for file, line in reversed(raised["lines"]):
        if file in cells or owner_of(file) == "user":
            source = f"In[{cells[file]}]" if file in cells else relative(file)
            return f"{text} ({sentence('fix.place', source=source, line=int(line))})"
    return text
