"""One run of a notebook on simulated devices, in a kernel of its own, with other texts for some files.

What is told of the run is the notebook's: lines, cells and edits of its cells.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

from devtrace.diagnosis.evidence.torchs_sentences import ABOUT_DEVICES
from devtrace.diagnosis.findings import Edit, Finding, Site, from_json
from devtrace.fixing.notebooks.kernel import Kernel
from devtrace.fixing.notebooks.text import NotebookText, runs
from devtrace.fixing.program import Ending, ProgramRun
from devtrace.fixing.source_text import SourceText
from devtrace.runtime.device_spec import ONE_DEVICE
from devtrace.source.user_code import OWN_PACKAGES


@dataclass(frozen=True)
class NotebookRunner:
    """A notebook file, absolute. With `spares`, which has one at most, a kernel starts while another one runs."""

    path: str
    simulate: str
    timeout: float | None = None
    one_device: bool = False
    cell_begins: Callable[[int], None] = lambda number: None  # told the number that a cell gets, before it runs
    spares: list[Kernel] | None = None

    def run(self, texts: Mapping[str, SourceText], own: frozenset[str] = frozenset()) -> ProgramRun:
        return self.result(self.begin(texts, own))

    def begin(self, texts: Mapping[str, SourceText], own: frozenset[str] = frozenset()) -> Kernel:
        """Let a kernel run the notebook, and return at once."""
        text = texts.get(self.path) or NotebookText(self.path, Path(self.path).read_bytes())
        notebook = NotebookText(self.path, text.data)
        notebook.check()
        kernel = self.spares.pop() if self.spares and not own else self._kernel(notebook, own)
        others = {file: other.data for file, other in texts.items() if file != self.path}
        kernel.begin(notebook, others, partial(self._run_cells, notebook))
        return kernel

    def result(self, kernel: Kernel) -> ProgramRun:
        """Wait for the end of a run; the kernel shuts down after that."""
        return _run_of(kernel.notebook, *kernel.result())

    def close(self) -> None:
        while self.spares:
            self.spares.pop().close()

    def _kernel(self, notebook: NotebookText, own: frozenset[str] = frozenset()) -> Kernel:
        variables = {OWN_PACKAGES: ",".join(sorted(own))} | ({ONE_DEVICE: "1"} if self.one_device else {})
        return Kernel(notebook, self.simulate, variables)

    def _run_cells(self, notebook: NotebookText, client: Any) -> Ending:
        from nbclient.exceptions import CellExecutionError

        if self.spares == []:
            self.spares.append(self._kernel(notebook))  # not before: the first hunk waits for no other kernel
        end = monotonic() + (self.timeout if self.timeout is not None else math.inf)
        cells = [(index, cell) for index, cell in enumerate(client.nb.cells) if runs(cell)]
        for number, (index, cell) in enumerate(cells, 1):
            self.cell_begins(number)
            if self.timeout is not None:
                client.timeout = max(int(end - monotonic() + 1), 1)
            _let_fail(cell)
            try:
                client.execute_cell(cell, index)
            except CellExecutionError:
                return "time" if monotonic() >= end else "raised"
            if monotonic() >= end:
                return "time"
        return "ended"


def _let_fail(cell: Any) -> None:
    """Let a cell raise that did so for its author, who went on below it; a device error is what the rounds end."""
    failed = [each.evalue for each in cell.outputs if each.output_type == "error"]
    if failed and not ABOUT_DEVICES.search(failed[-1]):
        cell.metadata["tags"] = [*cell.metadata.get("tags", ()), "raises-exception"]


def _run_of(notebook: NotebookText, data: Mapping[str, Any], ending: Ending, printed: str) -> ProgramRun:
    raised = data["raised"] if ending == "raised" else None
    cells = {str(file): int(count) for file, count in data["cells"].items()}
    where = next((f" (In[{cells[file]}])" for file, _ in raised["lines"] if file in cells), "") if raised else ""
    return ProgramRun(
        ending,
        tuple(_in_notebook(from_json(found), notebook.name) for found in data["findings"]),
        f"{raised['type']}: {raised['message']}{where}" if raised else "",
        tuple(_line(str(file), int(line), cells, notebook) for file, line in raised["lines"]) if raised else (),
        data["values"],
        printed,
        crossings=data["crossings"],
        peaks=data["peaks"],
    )


def _line(file: str, line: int, cells: Mapping[str, int], notebook: NotebookText) -> tuple[str, int]:
    """Return a traceback's line, that of a cell as the notebook's."""
    if file not in cells:
        return file, line
    with suppress(KeyError):
        return notebook.name, notebook.line_of(cells[file], line)
    return file, line


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
