"""One run of a notebook on simulated devices, in a kernel of its own, with other texts for some files.

nbclient runs the cells. What devtrace needs is run between them, outside of the notebook and of its history.
"""

import json
import os
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Any, Final

from devtrace.diagnosis.findings import Edit, Finding, from_json
from devtrace.fixing import values
from devtrace.fixing.notebooks.text import NotebookText, runs
from devtrace.fixing.runs import Ending, Run
from devtrace.fixing.source_text import SourceText
from devtrace.runtime import overlay
from devtrace.runtime.device_spec import ONE_DEVICE
from devtrace.source.user_code import OWN_PACKAGES
from devtrace.words.errors import UsageError

_CALL: Final = "__import__('devtrace.notebook.rounds', fromlist=['x']).{}(get_ipython(), {!r})"


@dataclass(frozen=True)
class NotebookRunner:
    """A notebook file, absolute."""

    path: str
    simulate: str
    timeout: float | None = None
    one_device: bool = False
    cell_begins: Callable[[int], None] = lambda number: None  # told the number that a cell gets, before it runs

    def run(self, texts: Mapping[str, SourceText], own: frozenset[str] = frozenset()) -> Run:
        text = texts.get(self.path) or NotebookText(self.path, Path(self.path).read_bytes())
        notebook = NotebookText(self.path, text.data)
        notebook.check()
        with tempfile.TemporaryDirectory(prefix="devtrace-fix-") as folder:
            found, changed = Path(folder) / "findings.json", Path(folder) / "texts.json"
            others = {file: other.data for file, other in texts.items() if file != self.path}
            overlay.write(changed, others)
            variables = {**os.environ, overlay.VARIABLE: str(changed), OWN_PACKAGES: ",".join(sorted(own))}
            variables |= {values.VARIABLE: str(found), "PYTHONHASHSEED": "0"}
            variables |= {ONE_DEVICE: "1"} if self.one_device else {}
            ending = self._execute(notebook, variables, str(found))
            if not found.exists():
                raise UsageError.of("fix-no-run.kernel")
            return _run_of(json.loads(found.read_text(encoding="utf-8")), ending, notebook)

    def _execute(self, notebook: NotebookText, variables: Mapping[str, str], found: str) -> Ending:
        client = self._client(notebook)
        from jupyter_client.kernelspec import NoSuchKernel
        from nbclient.exceptions import DeadKernelError

        try:
            with client.setup_kernel(env=dict(variables), cwd=str(Path(self.path).parent)):
                _call(client, "begin", self.simulate)
                ending = self._run_cells(client)
                _call(client, "write_findings", found)
                return ending
        except NoSuchKernel as error:
            raise UsageError.of("fix-no-run.no-kernel", kernel=repr(error.name)) from None
        except DeadKernelError:
            raise UsageError.of("fix-no-run.dead") from None

    def _client(self, notebook: NotebookText) -> Any:
        try:
            import nbclient
            import nbformat
        except ImportError as missing:
            raise UsageError.of("fix-notebook", package=missing.name) from None
        read = nbformat.reads(notebook.data.decode(), as_version=4)
        client = nbclient.NotebookClient(read, timeout=None, interrupt_on_timeout=True)
        client.reset_execution_trackers()
        return client

    def _run_cells(self, client: Any) -> Ending:
        from nbclient.exceptions import CellExecutionError

        end = monotonic() + self.timeout if self.timeout is not None else None
        number = 0
        for index, cell in enumerate(client.nb.cells):
            if not runs(cell):
                continue
            number += 1
            self.cell_begins(number)
            if end is not None:
                client.timeout = max(int(end - monotonic() + 1), 1)
            try:
                client.execute_cell(cell, index)
            except CellExecutionError:
                return "time" if end is not None and monotonic() >= end else "raised"
            if end is not None and monotonic() >= end:
                return "time"
        return "ended"


def _call(client: Any, function: str, argument: str) -> None:
    """Run a function of devtrace's in the kernel, as no cell of the notebook."""
    import nbformat
    from nbclient.exceptions import CellExecutionError

    client.timeout = None
    cells = client.nb.cells
    cells.append(nbformat.v4.new_code_cell(_CALL.format(function, argument)))  # nbclient runs none that has no place
    try:
        client.execute_cell(cells[-1], len(cells) - 1, store_history=False)
    except CellExecutionError as error:
        raise UsageError.of("fix-no-run.without-devtrace", fault=f"{error.ename}: {error.evalue}") from None
    finally:
        cells.pop()


def _run_of(data: Mapping[str, Any], ending: Ending, notebook: NotebookText) -> Run:
    raised = data["raised"] if ending == "raised" else None
    cells = {str(file): int(count) for file, count in data["cells"].items()}
    return Run(
        ending,
        tuple(_in_notebook(from_json(found), notebook.name) for found in data["findings"]),
        f"{raised['type']}: {raised['message']}" if raised else "",
        tuple(_line(str(file), int(line), cells, notebook) for file, line in raised["lines"]) if raised else (),
        data["values"],
        crossings=data["crossings"],
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
    site = finding.site
    if site is not None and site.cell is not None:
        site = replace(site, file=path)
    return replace(finding, edits=edits, others=others, site=site)


def _of_notebook(edits: tuple[Edit, ...], path: str) -> tuple[Edit, ...]:
    return tuple(edit if edit.cell is None else replace(edit, file=path) for edit in edits)
