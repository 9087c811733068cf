"""Runs of a notebook on simulated devices, in a process of its own, with other texts for some files.

What is told of a run is the notebook's: lines, cells and edits of its cells.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any, Final

from devtrace.diagnosis.findings import Edit, Finding, Site, from_json
from devtrace.fixing.notebooks.run_again import cells_to_run
from devtrace.fixing.notebooks.running import Running, of_process
from devtrace.fixing.notebooks.state import Asked, AskedCell
from devtrace.fixing.notebooks.text import NotebookText
from devtrace.fixing.program import ProgramRun, in_words, place_of, started
from devtrace.fixing.source_text import SourceText
from devtrace.runtime import forks, overlay
from devtrace.runtime.device_spec import NO_REAL_DEVICES, ONE_DEVICE
from devtrace.words.catalogue import sentence
from devtrace.words.errors import UsageError

_OF_NOTEBOOKS: Final = {**NO_REAL_DEVICES, "PYTHONHASHSEED": "0"}
_DRAWS: Final = {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}
"""As in a kernel of Jupyter's."""


def _folder() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="devtrace-fix-")


@dataclass
class NotebookRunner:
    """A notebook file, absolute. One run goes on from the last where its first changed cell is.

    `start` starts a host in which `position` cells of the notebook as it is in the first run have run.
    """

    path: str
    simulate: str
    timeout: float | None = None
    one_device: bool = False
    cell_begins: Callable[[int], None] = lambda number: None  # told the number that a cell gets, before it runs
    start: Callable[[Mapping[str, str], str], Running] | None = None  # with an environment, and a folder to write in
    position: int = 0
    again: list[int] | None = field(default=None, init=False)  # cells before the position that ran in the last run
    is_begun: bool = field(default=False, init=False)  # a run, whose result nobody has taken
    _host: Running | None = field(default=None, init=False)
    _is_closed: bool = field(default=False, init=False)
    _before: list[AskedCell] = field(default_factory=list, init=False)
    _last: list[AskedCell] = field(default_factory=list, init=False)
    _files: dict[str, bytes] = field(default_factory=dict, init=False)
    _text: NotebookText = field(init=False)
    _folder: TemporaryDirectory[str] = field(default_factory=_folder, init=False)

    def run(self, texts: Mapping[str, SourceText], own: frozenset[str] = frozenset()) -> ProgramRun:
        self.begin(texts, own)
        return self.result()

    def begin(
        self, texts: Mapping[str, SourceText], own: frozenset[str] = frozenset(), again: list[int] | None = None
    ) -> None:
        """Let the notebook run, and return at once. `again`: cells before the position that run whatever changed."""
        text = texts.get(self.path) or NotebookText(self.path, Path(self.path).read_bytes())
        self._text = NotebookText(self.path, text.data)
        self._text.check()
        files = {file: other.data for file, other in texts.items() if file != self.path}
        overlay.write(self._changed, files)
        cells = [*self._text.cells()]
        if not self._before:
            self._before, self._last = cells, cells[: self.position]
        self.again = run_again = self._to_run_again(cells, files) if again is None else again
        asked: Asked = {
            "cells": cells,
            "first": _first_change(self._last, cells) if files == self._files else 0,
            "again": run_again,
            "own": ",".join(sorted(own)),
            "until": None if self.timeout is None else monotonic() + self.timeout,
        }
        self._last, self._files = cells, files
        self.host().ask(asked)
        self.is_begun = True

    def _to_run_again(self, cells: list[AskedCell], files: Mapping[str, bytes]) -> list[int]:
        """Return the cells before the position that have changed, and those that go by them; all if a file has."""
        texts = [each["source"] for each in cells[: self.position]]
        changed = {at for at, text in enumerate(texts) if files or text != self._before[at]["source"]}
        return cells_to_run(texts, changed)

    def result(self) -> ProgramRun:
        """Wait for the end of a run."""
        self.is_begun = False
        try:
            for line in self.host().answers:
                told = json.loads(line)
                if "fault" in told:
                    raise UsageError.of("fix-no-run.fault", fault=told["fault"])
                if "cell" not in told:
                    if not forks.CAN_FORK:
                        self._end_host()
                    return _run_of(self._text, told)
                self.cell_begins(told["cell"])
        except KeyboardInterrupt:
            self.close()
            raise
        raise UsageError.of("fix-no-run.dead")

    def close(self) -> None:
        """End for good, whatever another thread waits for."""
        self._is_closed = True
        self._end_host()

    def _end_host(self) -> None:
        host, self._host = self._host, None
        if host is not None:
            host.close()

    @property
    def _changed(self) -> Path:
        return Path(self._folder.name) / "texts.json"

    def host(self) -> Running:
        """Return the first host, which is started if there is none."""
        if self._host is None:
            own = {overlay.VARIABLE: str(self._changed)} | ({ONE_DEVICE: "1"} if self.one_device else {})
            self._host = (self.start or self._in_a_process)(own, self._folder.name)
        if self._is_closed:
            self._end_host()
            raise UsageError.of("fix-no-run.dead")
        return self._host

    def _in_a_process(self, own: Mapping[str, str], _: str) -> Running:
        command = (sys.executable, "-m", "devtrace.fixing.notebooks.host", self.simulate)
        variables = {**_DRAWS, **os.environ, **_OF_NOTEBOOKS, **own}
        return of_process(started(command, variables, subprocess.PIPE, str(Path(self.path).parent)))


def _first_change(before: list[AskedCell], now: list[AskedCell]) -> int:
    """Return the index of the first cell that is another than in the run before."""
    same = (one == other for one, other in zip(before, now, strict=False))
    return sum(1 for _ in itertools.takewhile(bool, same))


def _run_of(notebook: NotebookText, told: Mapping[str, Any]) -> ProgramRun:
    raised = told["raised"]
    traceback = [(str(file), int(line)) for file, line in raised["lines"]] if raised else []
    cells = {str(file): int(count) for file, count in told["cells"].items()}

    def place(file: str, line: int) -> str:
        is_cell = file in cells
        return sentence("fix.place", source=f"In[{cells[file]}]", line=line) if is_cell else place_of(file, line)

    return ProgramRun(
        told["ending"],
        tuple(_in_notebook(from_json(found), notebook.name) for found in told["findings"]),
        in_words(raised, place),
        tuple((notebook.name if file in cells else file, cells.get(file), line) for file, line in traceback),
        told["values"],
        told["printed"],
        crossings=told["crossings"],
        peaks=told["peaks"],
    )


def _in_notebook(finding: Finding, path: str) -> Finding:
    """Return a finding whose cells are those of a notebook, not files of one kernel."""
    edits = _of_notebook(finding.edits, path)
    others = tuple(replace(each, edits=_of_notebook(each.edits, path)) for each in finding.others)
    culprit = finding.culprit and replace(finding.culprit, born=_site_of_notebook(finding.culprit.born, path))
    site = _site_of_notebook(finding.site, path)
    return replace(finding, edits=edits, others=others, site=site, culprit=culprit)


def _site_of_notebook(site: Site | None, path: str) -> Site | None:
    return site if site is None or site.cell is None else replace(site, file=path)


def _of_notebook(edits: tuple[Edit, ...], path: str) -> tuple[Edit, ...]:
    return tuple(edit if edit.cell is None else replace(edit, file=path) for edit in edits)
