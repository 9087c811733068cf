"""The process in which a notebook's cells run.

python -m devtrace.fixing.notebooks.host DEVICES        reads and prints lines of JSON (`fixing/host.py`)
"""

from __future__ import annotations

import io
import os
import sys
from collections import deque
from contextlib import redirect_stderr, redirect_stdout
from typing import IO, Any, NoReturn

from devtrace.contract import findings_json
from devtrace.diagnosis.findings import Site
from devtrace.fixing import values
from devtrace.fixing.host import Host, RunRequest
from devtrace.fixing.program import MOST_OUTPUT, Ending
from devtrace.fixing.source_text import Cell, forget_modules
from devtrace.notebook.cells import Traced
from devtrace.notebook.magic import extensions
from devtrace.notebook.quiet_shell import new_shell
from devtrace.runtime import forks, overlay
from devtrace.words.errors import named


class NotebookHost(Host):
    """A shell in which the cells before `position` have run, and what was found in them, by their numbers.

    The first cell to run may have failed in the kernel, as `traced` has it: then `kernel_error` answers the first
    request, unless that is for one memory.
    """

    def __init__(self, shell: Any, asks: IO[str], answers: IO[str], position: int = 0) -> None:
        super().__init__(asks, answers, position)
        self.shell = shell
        self.traced: dict[int, Traced] = {}
        self.kernel_error: BaseException | None = None
        self._printed: dict[int, str] = {}

    def serve(self) -> NoReturn:
        """Run what is asked for, until nobody asks. It takes half of the threads: two hosts run at once."""
        torch = sys.modules["torch"]
        torch.set_num_threads(max(1, torch.get_num_threads() // 2))
        request = self.next_request()
        if request is not None and self.kernel_error is not None and not request["one_device"]:
            self._tell_result("raised", self.kernel_error)
            self.say({"gone": 0})
            request = self.next_request()
        request = self.branch_at(self.position, request)
        try:
            self._run_cells(request)
        except BaseException as fault:  # noqa: BLE001 (whoever asked hears of it)
            self.say({"fault": named(fault)})
        os._exit(0)

    def _run_cells(self, request: RunRequest) -> None:
        """Run cells and tell the result. For a cell that fails as it did in the kernel, the kernel's trace counts."""
        if request["number"]:  # no longer the program that failed
            self.traced.pop(self.position + 1, None)
        if overlay.files() and request["again"]:
            forget_modules()
        self._join_devices(request)
        indexes = deque([*request["again"], *range(self.position, len(request["cells"]))])
        while indexes:
            if indexes[0] >= self.position and self.is_worth(request):
                request = self.branch_at(indexes[0], request)  # returns in a fork; this process stays as host
                self._join_devices(request)
            index = indexes.popleft()
            self.say({"cell": index + 1})
            traced_before = self.traced.pop(index + 1, None)
            error = self._run_cell(index + 1, request["cells"][index])
            if error is not None and not request["cells"][index]["may_fail"]:
                traced_now = self.traced.get(index + 1)
                if traced_before and traced_now and _first_site(traced_before) == _first_site(traced_now):
                    self.traced[index + 1] = traced_before
                self._tell_result("raised", error)
                return
        self._tell_result("ended")

    def _join_devices(self, request: RunRequest) -> None:
        if request["one_device"]:
            extensions[self.shell].tracing.join_devices()

    def _run_cell(self, number: int, cell: Cell) -> BaseException | None:
        self.shell.execution_count = number
        printed = io.StringIO()
        with redirect_stdout(printed), redirect_stderr(io.StringIO()):
            result = self.shell.run_cell(cell["source"], store_history=True, cell_id=cell["id"])
        self._printed[number] = printed.getvalue()[:MOST_OUTPUT]
        error: BaseException | None = result.error_before_exec or result.error_in_exec
        return error

    def keep(self, what: str, traced: Traced | None) -> None:
        if what == "finished" and traced is not None:
            self.traced[traced.cell.count or 0] = traced

    def _tell_result(self, ending: Ending, error: BaseException | None = None) -> None:
        """Send the findings of all cells so far, and how the last one ended."""
        reports = [self.traced[number].report for number in sorted(self.traced)]
        printed = "".join(self._printed[number] for number in sorted(self._printed))
        variables = values.values_of(self.shell.user_ns)
        raised = error and findings_json.raised(error)
        self.tell(ending, reports, variables, printed, raised=raised, cells=numbers_of_cells())


def _first_site(traced: Traced) -> Site | None:
    return next((finding.site for finding in traced.report.findings), None)


def numbers_of_cells() -> dict[str, int]:
    """Return the number of each cell by its file name, also of cells that only define functions."""
    if "torch" not in sys.modules:
        return {}
    from devtrace.recording.columns import sites

    return {cell.file: cell.number for cell in sites.cells_so_far()}


def _start_tracing(host: NotebookHost, devices: str) -> None:
    """Trace every cell from here on, on simulated devices; torch is imported for these anyhow."""
    for magic, argument in (("load_ext", "devtrace"), ("devtrace", f"simulate {devices}"), ("devtrace", "on")):
        host.shell.run_line_magic(magic, argument)
    values.seed()  # torch's too, now that there are devices
    extensions[host.shell].tracing.observe(host.keep)


def main() -> None:
    forks.end_with_parent()
    asks, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    null_device = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null_device, stream)
    devices, sys.argv = sys.argv[1], [""]
    host = NotebookHost(new_shell(), asks, answers)
    _start_tracing(host, devices)
    host.serve()


if __name__ == "__main__":
    main()
