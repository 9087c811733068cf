"""Runs programs in forks of one Python that has torch loaded.

Each fork is a process of its own, without the seconds that importing takes. It ends as Python does: exit code,
functions registered at exit, the traceback on stderr. The Python that forks runs no op itself: threads that torch
starts for one would be missing in its forks.
"""

from __future__ import annotations

import atexit
import functools
import gc
import importlib
import json
import os
import pickle
import resource
import runpy
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LIMIT = 300  # seconds for one program, on a machine that is busy with something else
JOB = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
NEEDED = (
    "torch._dynamo",  # every optimizer imports it
    "numpy.ma",
    "devtrace.cli.main", "devtrace.api.recording", "devtrace.api.environment", "devtrace.recording.recording",
    "devtrace.simulation.entry", "devtrace.simulation.simulation", "devtrace.memory.observer",
    "devtrace.dtypes.autocast_recorder", "devtrace.trace.memory_curves",
    "devtrace.explaining.explain", "devtrace.explaining.reading.reader", "devtrace.diagnosis.store",
    "devtrace.contract.code_scanning", "devtrace.contract.forms", "devtrace.notebook.magic",
    "programs", "fix_rounds", "shells", "IPython.core.completer", "IPython.core.magics", "stack_data", "pytest",
)  # fmt: skip
DIAGNOSED = [Path(__file__).parents[1] / "golden" / "cases" / f"{kind}.devtrace" for kind in ("untraced", "of-costs")]
"""Cases that are diagnosed once before all forks: rules, patterns and sentences are loaded then, a third of a fork."""


@dataclass(frozen=True)
class Ended:
    """Exit code and output of a process."""

    returncode: int
    stdout: str
    stderr: str


class Shared:
    """A folder of what the session's runs gave, where there is a session."""

    folder: Path | None = None


SHARED = Shared()


class Spent:
    """Seconds of the processor that forks took."""

    seconds = 0.0


SPENT = Spent()


class Warm:
    """Python that forks: `with Warm() as warm`. It imports what is `needed`; `load` names modules to `load()` first."""

    def __init__(self, *load: str, needed: Sequence[str] = NEEDED) -> None:
        self._names = [json.dumps(needed), *load]

    def __enter__(self) -> Warm:
        environment = {name: value for name, value in os.environ.items() if name not in JOB}
        self._process = subprocess.Popen(
            [sys.executable, __file__, *self._names],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        return self

    def __exit__(self, *error: object) -> None:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        self._process.kill()
        self._process.communicate()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        SPENT.seconds -= after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime  # counted fork by fork

    def devtrace(self, folder: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> Ended:
        """Run `devtrace ARGUMENT ...` in a folder."""
        return self._run(run_devtrace, folder, json.dumps(dict(environment or {})), *arguments)

    def python(self, folder: Path, script: str, simulate: str = "") -> Ended:
        """Run `python SCRIPT` as on a machine that has the simulated devices."""
        return self._run(run_python, folder, script, simulate)

    def pytest(self, folder: Path, *arguments: str, environment: Mapping[str, str]) -> Ended:
        """Run `python -m pytest ARGUMENT ...` in a folder."""
        return self._run(run_pytest, folder, json.dumps(dict(environment)), *arguments)

    def main_of(self, folder: Path, sources: Path, module: str, *arguments: str) -> Ended:
        """Call `main(ARGUMENT, ...)` of a module that stands beside this one, which imports the sources of a copy."""
        return self._run(run_main, folder, str(sources), module, *arguments)

    def cell(self, folder: Path, file: str, as_file: str) -> Ended:
        """Run the text of a file as a cell after `%load_ext devtrace`, with `as_file` as its `__file__`."""
        return self._run(run_cell, folder, file, as_file)

    def call(self, module: str, function: str, *arguments: str) -> Any:
        """Return the result of a function of a module that stands beside this one."""
        with tempfile.TemporaryDirectory() as folder:
            result = Path(folder) / "result.pickle"
            ended = self._run(run_function, Path(folder), str(result), module, function, *arguments)
            assert ended.returncode == 0, ended.stderr
            return pickle.loads(result.read_bytes())

    def _run(self, job: Callable[..., None], folder: Path, *arguments: str) -> Ended:
        out, err = folder / "stdout.log", folder / "stderr.log"
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([job.__name__, str(folder), str(out), str(err), arguments]) + "\n")
        self._process.stdin.flush()
        code, seconds = self._process.stdout.readline().split()
        SPENT.seconds += float(seconds)
        ended = Ended(int(code), out.read_text(), err.read_text())
        out.unlink()
        err.unlink()
        return ended


def serve() -> Callable[[], None] | None:
    """Fork for each job. Return the job in its fork, None in the Python that forked, once nobody asks any more."""
    needed, *load = json.loads(sys.argv[1]), *sys.argv[2:]
    for name in needed:
        importlib.import_module(name)
    for name in load:
        importlib.import_module(name).load()
    if "programs" in needed:
        diagnose()
    sys.dont_write_bytecode = True  # a program whose text changes within a second would run as it was before
    gc.collect()
    gc.freeze()  # a fork that ends need not look through all of torch: 0.1 s instead of 0.9
    while line := sys.stdin.readline():
        name, folder, out, err, arguments = json.loads(line)
        child = os.fork()
        if child == 0:
            redirect(folder, out, err)
            signal.alarm(LIMIT)
            return functools.partial(globals()[name], *arguments)
        _, status, used = os.wait4(child, 0)
        print(os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, flush=True)
    return None


def diagnose() -> None:
    import devtrace

    for file in DIAGNOSED:
        str(devtrace.diagnose(devtrace.load(file)))


def redirect(folder: str, out: str, err: str) -> None:
    os.chdir(folder)
    for descriptor, path in ((0, os.devnull), (1, out), (2, err)):
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        os.dup2(file, descriptor)
        os.close(file)


def run_devtrace(environment: str, *arguments: str) -> None:
    from devtrace.cli.main import main

    os.environ.update(json.loads(environment))
    sys.exit(main(arguments))


def run_python(script: str, simulate: str) -> None:
    if simulate:
        import devtrace

        devtrace.simulate(simulate).start()
    sys.argv = [script]
    sys.path[0] = os.getcwd()
    runpy.run_path(os.path.abspath(script), run_name="__main__")


def run_pytest(environment: str, *arguments: str) -> None:
    import pytest

    os.environ.update(json.loads(environment))
    sys.path[0] = os.getcwd()
    sys.exit(pytest.main([*arguments]))


def run_main(sources: str, module: str, *arguments: str) -> None:
    os.environ["PYTHONPATH"] = os.pathsep.join([sources, str(Path(__file__).parent)])
    sys.path.insert(0, sources)
    importlib.import_module(module).main(*arguments)


def run_cell(file: str, as_file: str) -> None:
    from shells import new_shell

    sys.path[0] = os.getcwd()
    with new_shell() as shell:
        shell.ns["__file__"] = os.path.abspath(as_file)
        shell.run("%load_ext devtrace")
        print(shell.run(Path(file).read_text()).stdout, end="")


def run_function(result: str, module: str, function: str, *arguments: str) -> None:
    value = getattr(importlib.import_module(module), function)(*arguments)
    Path(result).write_bytes(pickle.dumps(value))


def run_and_leave(job: Callable[[], None]) -> None:
    """Run a job and end as Python does, but leave before modules are taken down: that costs more than the program."""
    code = 0

    def leave() -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

    atexit.register(leave)
    try:
        job()
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else int(ending.code is not None)
        raise
    except BaseException:
        code = 1
        raise


if __name__ == "__main__":
    chosen = serve()
    if chosen is not None:
        run_and_leave(chosen)
