"""Runs programs in forks of one Python that has torch loaded: each is a process of its own, that ends as Python does
(exit code, what is registered at exit, the traceback on stderr), without the seconds that importing takes.

The Python that forks runs no op itself: threads that torch starts for one would be missing in its forks.
"""

from __future__ import annotations

import atexit
import functools
import gc
import importlib
import json
import os
import runpy
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DEVTRACE = "devtrace"
PYTHON = "python"
CELL = "cell"
JOB = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
NEEDED = (
    "torch._dynamo",  # every optimizer imports it
    "devtrace.cli.main", "devtrace.recording.recording", "devtrace.simulation.simulation",
    "devtrace.diagnosis.store", "devtrace.notebook.magic",
    "shells", "IPython.core.completer", "IPython.core.magics", "stack_data",
)  # fmt: skip


@dataclass(frozen=True)
class Ended:
    """What a process left."""

    returncode: int
    stdout: str
    stderr: str


class Warm:
    """The Python that forks; `with Warm() as warm`."""

    def __enter__(self) -> Warm:
        alone = {name: value for name, value in os.environ.items() if name not in JOB}
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=alone
        )
        return self

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._process.communicate()

    def devtrace(self, folder: Path, *arguments: str) -> Ended:
        """`devtrace ARGUMENT ...` in a folder."""
        return self._run(DEVTRACE, folder, arguments)

    def python(self, folder: Path, script: str, simulate: str) -> Ended:
        """`python SCRIPT` on a machine that has the pretended devices."""
        return self._run(PYTHON, folder, [script, simulate])

    def cell(self, folder: Path, file: str, as_file: str) -> Ended:
        """The text of a file as a cell after `%load_ext devtrace`; `as_file` is what it believes to be its file."""
        return self._run(CELL, folder, [file, as_file])

    def _run(self, what: str, folder: Path, arguments: Any) -> Ended:
        out, err = folder / "stdout.log", folder / "stderr.log"
        job = {"what": what, "folder": str(folder), "arguments": list(arguments), "out": str(out), "err": str(err)}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        code = int(self._process.stdout.readline())
        ended = Ended(code, out.read_text(), err.read_text())
        out.unlink()
        err.unlink()
        return ended


def _serve() -> dict[str, Any] | None:
    """Fork for each job. In the fork, what to do; None at the end."""
    for name in NEEDED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # a fork that ends need not look through all of torch: 0.1 s instead of 0.9
    while line := sys.stdin.readline():
        job: dict[str, Any] = json.loads(line)
        child = os.fork()
        if child == 0:
            _move_in(job)
            return job
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    return None


def _move_in(job: dict[str, Any]) -> None:
    os.chdir(job["folder"])
    for descriptor, path in ((0, os.devnull), (1, job["out"]), (2, job["err"])):
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        os.dup2(file, descriptor)
        os.close(file)


def _devtrace(*arguments: str) -> None:
    from devtrace.cli.main import main

    sys.exit(main(arguments))


def _python(script: str, simulate: str) -> None:
    import devtrace

    devtrace.simulate(simulate).start()
    sys.argv = [script]
    sys.path[0] = os.getcwd()
    runpy.run_path(os.path.abspath(script), run_name="__main__")


def _cell(file: str, as_file: str) -> None:
    from shells import new_shell

    sys.path[0] = os.getcwd()
    with new_shell() as shell:
        shell.ns["__file__"] = os.path.abspath(as_file)
        shell.run("%load_ext devtrace")
        print(shell.run(Path(file).read_text()).stdout, end="")


def _leave_after(run: Callable[[], None]) -> None:
    """Run, and end as Python does up to the last of what is registered at exit: taking all modules down after it costs
    more than the program.
    """
    code = 0

    def leave() -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

    atexit.register(leave)
    try:
        run()
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else int(ending.code is not None)
        raise
    except BaseException:
        code = 1
        raise


if __name__ == "__main__":
    todo = _serve()
    if todo is not None:
        runs: dict[str, Callable[..., None]] = {DEVTRACE: _devtrace, PYTHON: _python, CELL: _cell}
        _leave_after(functools.partial(runs[todo["what"]], *todo["arguments"]))
