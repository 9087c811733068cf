"""Kernels as forks of one Python that has imported torch, where the system and the kernel's command allow it.

    forks = Forks()
    forks.serve(manager, folder, is_wanted)      # jupyter_client's: it asks us for the process of its kernel
    forks.close()                     # the kernels end too
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TextIO

from jupyter_client.provisioning.local_provisioner import LocalProvisioner

from devtrace.runtime.device_spec import NO_REAL_DEVICES

_WARM: Final = (sys.executable, "-m", "devtrace.fixing.notebooks.warm_python")
_LAUNCHER: Final = [sys.executable, "-m", "ipykernel_launcher"]
IS_POSSIBLE: Final = hasattr(os, "pidfd_open")
"""On Linux, which has these: on macOS frameworks that torch is linked with forbid forks, on Windows there are none."""

_LONGEST_ADDRESS: Final = 100
"""Of a socket's file, which may have 107 bytes; a dash and the number of a channel follow."""


class Forks:
    """One Python that forks, started with the first kernel that asks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._python: subprocess.Popen[bytes] | None = None
        self._line: TextIO | None = None
        self._is_closed = False

    def start(self) -> None:
        """Let it import meanwhile, so that the first kernel has less to wait for."""
        with self._lock:
            self._begun()

    def serve(self, manager: Any, folder: Path, is_wanted: Callable[[], bool]) -> None:
        """Let a kernel manager of jupyter_client start its kernel as a fork, and talk with it in files of a folder.

        A port is free when the manager looks for one, and seconds later, when the kernel takes it, it may be another's.
        """
        manager.provisioner = Provisioner.of(manager, self, is_wanted)
        address = str(folder / "kernel")
        if len(address) < _LONGEST_ADDRESS:
            manager.transport, manager.ip = "ipc", address

    def begin(self, argv: list[str], cwd: str, env: dict[str, str]) -> Fork | None:
        """Return a new kernel's process; None where this Python has ended."""
        with self._lock:
            line = self._begun()
            if line is not None:
                with suppress(OSError, ValueError):
                    line.write(json.dumps({"argv": argv, "cwd": cwd, "env": env}) + "\n")
                    line.flush()
                    return Fork(int(line.readline()))
        return None

    def close(self) -> None:
        """End it with its kernels."""
        self._is_closed = True
        if self._python is not None:
            self._python.kill()
            with self._lock, suppress(OSError):  # whoever waited for an answer has got its end
                self._python.wait()
                if self._line is not None:
                    self._line.close()

    def _begun(self) -> TextIO | None:
        """Both ways go by its standard input: whatever it imports may print."""
        if self._python is None and not self._is_closed:
            ours, its = socket.socketpair()
            environment = {**os.environ, **NO_REAL_DEVICES, "PYTHONHASHSEED": "0"}
            with ours, its:
                self._line = ours.makefile("rw", encoding="utf-8")
                self._python = subprocess.Popen(_WARM, stdin=its.fileno(), stdout=2, env=environment, start_new_session=True)
        return self._line


class Fork:
    """Stands for a Popen with jupyter_client: a process that is no child of this one, and leads a group."""

    stdin = stdout = stderr = None

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._descriptor = os.pidfd_open(pid)
        weakref.finalize(self, os.close, self._descriptor)
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Look whether it is there. Its kernel's thread asks, and at the same time whoever closes the kernel."""
        if self.returncode is None:
            end = select.poll()
            end.register(self._descriptor, select.POLLIN)
            if end.poll(0):
                self.returncode = 1  # nobody knows it: it was the Python's to ask
        return self.returncode

    def wait(self) -> int | None:
        return self.poll()

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(OSError):
                os.killpg(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)


class Provisioner(LocalProvisioner):
    """Starts a kernel of this very Python as a fork, any other as jupyter_client does."""

    forks: Forks
    is_wanted: Callable[[], bool]

    @classmethod
    def of(cls, manager: Any, forks: Forks, is_wanted: Callable[[], bool]) -> Provisioner:
        made = cls(kernel_id=manager.kernel_id, kernel_spec=manager.kernel_spec, parent=manager)
        made.forks, made.is_wanted = forks, is_wanted
        return made

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> Any:
        is_ours = cmd[:3] == _LAUNCHER and not self.kernel_spec.env
        fork = self.forks.begin(cmd[2:], str(kwargs["cwd"]), dict(kwargs["env"])) if is_ours else None
        if fork is None and not self.is_wanted():
            raise CancelledError  # while it waited; what runs on its own would run on without us
        if fork is None:
            return await super().launch_kernel(cmd, **kwargs)
        self.process: Any = fork
        self.pid, self.pgid, self.cwd = fork.pid, fork.pid, kwargs["cwd"]
        return self.connection_info
