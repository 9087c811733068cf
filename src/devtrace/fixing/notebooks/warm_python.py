"""A Python that has imported what takes longest, and becomes a kernel as often as one is asked for, each time in a fork.

    python -m devtrace.fixing.notebooks.warm_python      reads {"argv", "cwd", "env"}, a line each; answers with process ids

Its standard input is a socket, for both ways. It runs no op, and no thread is there when it forks: numpy's BLAS ends its
own for that. A fork is a kernel like any other, in a group of its own and with
the environment that it is given. It ends when this process does, which ends with its standard input.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import json
import os
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

_FIRST: Final = (
    "ipykernel.kernelapp", "ipykernel.ipkernel", "torch", "devtrace.notebook.magic", "devtrace.fixing.notebooks.kernel_rounds",
    "devtrace.recording.recording", "devtrace.simulation.simulation", "devtrace.diagnosis.diagnose",
    "devtrace.diagnosis.store",
)  # fmt: skip
_LATER: Final = ("torch._dynamo", "devtrace.report.mime", "devtrace.contract.findings_json")
"""Once the first kernel runs: every optimizer imports torch._dynamo, which takes as long as torch itself."""


def _load(names: Sequence[str]) -> None:
    unknown = [name for name in names if name not in sys.modules]
    for name in unknown:
        if importlib.util.find_spec(name.partition(".")[0]) is not None:
            importlib.import_module(name)
    if unknown:
        gc.collect()


def _asked() -> dict[str, Any] | None:
    """Fork for each request; return it in the fork, and None in this process once nobody asks any more."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for a fork: who asked looks whether it is there
    ways = socket.socket(fileno=os.dup(0)).makefile("rw", encoding="utf-8")
    _load(_FIRST)  # before anybody asks: who does waits for no more than what is left of it
    while line := ways.readline():
        this = os.getpid()
        child = os.fork()
        if child == 0:
            return {"parent": this, **json.loads(line)}
        with suppress(OSError):
            os.setpgid(child, child)  # here too: whoever gets its number may end its group at once
        print(child, file=ways, flush=True)
        _load(_LATER)
    return None


def _become_kernel(asked: dict[str, Any]) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setpgid(0, 0)
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    sys.stdin = open(0, closefd=False)
    sys.argv = [*asked["argv"], f"--IPKernelApp.parent_handle={asked['parent']}"]
    importlib.import_module("ipykernel.kernelapp").launch_new_instance()


if __name__ == "__main__":
    del sys.path[0]  # as ipykernel's launcher does; IPython adds the kernel's folder
    wanted = _asked()
    if wanted is not None:
        _become_kernel(wanted)
