"""A kernel for one run of a notebook: it starts before it is known what runs, and shuts down when that is already known.

nbclient runs the cells. What devtrace needs is run between them, outside of the notebook and of its history.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future
from pathlib import Path
from typing import Any, Final

from devtrace.fixing.notebooks.text import NotebookText
from devtrace.fixing.program import Ending
from devtrace.runtime import overlay
from devtrace.runtime.device_spec import NO_REAL_DEVICES
from devtrace.words.errors import UsageError

_CALL: Final = "__import__('devtrace.fixing.notebooks.kernel_rounds', fromlist=['x']).{}(get_ipython(), {!r})"
RunCells = Callable[[Any], Ending]
Found = tuple[Mapping[str, Any], Ending, str]
"""What was found, how the run ended, and what it printed."""


class Kernel:
    """Lives in a thread, as nbclient's loop does. `close()` ends it, whatever it does."""

    def __init__(self, notebook: NotebookText, devices: str, variables: Mapping[str, str]) -> None:
        self.notebook = notebook
        self._devices = devices
        self._variables = variables
        self._client = _client_of(notebook)
        self._asked: Future[tuple[Mapping[str, bytes], RunCells]] = Future()
        self._found: Future[Found] = Future()
        self._is_closed = False
        threading.Thread(target=self._live, name="devtrace-kernel").start()

    def begin(self, notebook: NotebookText, others: Mapping[str, bytes], run_cells: RunCells) -> None:
        self.notebook = notebook
        self._asked.set_result((others, run_cells))

    def result(self) -> Found:
        """Return what was found and how the run ended; raises what kept the notebook from running."""
        try:
            return self._found.result()
        except KeyboardInterrupt:
            self.close()
            raise

    def close(self) -> None:
        self._is_closed = True  # it looks at this once its process is there for others to end
        self._client.shutdown_kernel = "immediate"
        process = getattr(getattr(self._client.km, "provisioner", None), "process", None)
        if not self._asked.cancel() and process is not None:
            process.kill()

    def _live(self) -> None:
        from jupyter_client.kernelspec import NoSuchKernel
        from nbclient.exceptions import DeadKernelError

        try:
            with tempfile.TemporaryDirectory(prefix="devtrace-fix-") as folder:
                self._run_once(Path(folder))
        except (CancelledError, DeadKernelError):
            pass
        except NoSuchKernel as error:
            self._failed(UsageError.of("fix-no-run.no-kernel", kernel=repr(error.name)))
        except Exception as error:  # noqa: BLE001 (whoever asked gets it)
            self._failed(error)
        finally:
            self._failed(UsageError.of("fix-no-run.dead"))

    def _failed(self, error: Exception) -> None:
        if not self._found.done():
            self._found.set_exception(error)

    def _run_once(self, own: Path) -> None:
        found, changed = own / "findings.json", own / "texts.json"
        own_of_round = {**NO_REAL_DEVICES, **self._variables, overlay.VARIABLE: str(changed), "PYTHONHASHSEED": "0"}
        folder = str(Path(self.notebook.name).parent)
        with self._client.setup_kernel(env={**os.environ, **own_of_round}, cwd=folder):
            if self._is_closed:
                return
            _call(self._client, "prepare", "")
            others, run_cells = self._asked.result()
            overlay.write(changed, others)
            self._client.nb = _read(self.notebook)
            _call(self._client, "begin", self._devices)
            ending = run_cells(self._client)
            _call(self._client, "write_findings", str(found))
            if not found.exists():
                raise UsageError.of("fix-no-run.kernel")
            data = json.loads(found.read_text(encoding="utf-8"))
            self._found.set_result((data, ending, _printed(self._client.nb)))


def _client_of(notebook: NotebookText) -> Any:
    try:
        import nbclient
    except ImportError as missing:
        raise UsageError.of("fix-notebook", package=missing.name) from None
    client = nbclient.NotebookClient(_read(notebook), timeout=None, interrupt_on_timeout=True)
    client.reset_execution_trackers()
    return client


def _read(notebook: NotebookText) -> Any:
    import nbformat

    return nbformat.reads(notebook.data.decode(), as_version=4)


def _printed(notebook: Any) -> str:
    """Return what the cells printed, and the values of their last expressions."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    printed = [each for each in outputs if each.output_type == "execute_result" or each.get("name") == "stdout"]
    return "".join(each.get("text", each.get("data", {}).get("text/plain", "")) for each in printed)


def _call(client: Any, function: str, argument: str) -> None:
    """Run a function of devtrace's in the kernel, as no cell of the notebook.

    After a cell has failed a kernel refuses to run what was asked for before. Until a thread of its own has ended that
    it also refuses what comes later, as this does: it is asked for again.
    """
    import nbformat
    from nbclient.exceptions import CellExecutionError

    replies = ["aborted"]
    client.timeout = None
    client.on_cell_executed = lambda execute_reply, **_: replies.append(execute_reply["content"]["status"])
    cells = client.nb.cells
    cells.append(nbformat.v4.new_code_cell(_CALL.format(function, argument)))  # nbclient runs none that has no place
    try:
        while replies[-1] == "aborted":
            client.execute_cell(cells[-1], len(cells) - 1, store_history=False)
    except CellExecutionError as error:
        raise UsageError.of("fix-no-run.without-devtrace", fault=f"{error.ename}: {error.evalue}") from None
    finally:
        client.on_cell_executed = None
        cells.pop()
