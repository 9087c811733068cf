"""Kernels as forks of one Python that has imported torch, where the system and the kernel's command allow it.

    forks = Forks()
    forks.serve(manager, folder)      # jupyter_client's: it asks us for the process of its kernel
    forks.close()                     # the kernels end too
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from jupyter_client.provisioning.local_provisioner import LocalProvisioner

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
        self._python: subprocess.Popen[str] | None = None
        self._is_closed = False

    def start(self) -> None:
        """Let it import meanwhile, so that the first kernel has less to wait for."""
        with self._lock:
            self._begun()

    def serve(self, manager: Any, folder: Path) -> None:
        """Let a kernel manager of jupyter_client start its kernel as a fork, and talk with it in files of a folder.

        A port is free when the manager looks for one, and seconds later, when the kernel takes it, it may be another's.
        """
        manager.provisioner = Provisioner.of(manager, self)
        address = str(folder / "kernel")
        if len(address) < _LONGEST_ADDRESS:
            manager.transport, manager.ip = "ipc", address

    def begin(self, argv: list[str], cwd: str, env: dict[str, str]) -> Fork | None:
        """Return a new kernel's process; None where this Python has ended."""
        with self._lock:
            python = self._begun()
            if python is None or python.stdin is None or python.stdout is None:
                return None
            with suppress(OSError, ValueError):
                python.stdin.write(json.dumps({"argv": argv, "cwd": cwd, "env": env}) + "\n")
                python.stdin.flush()
                return Fork(int(python.stdout.readline()))
        return None

    def close(self) -> None:
        """End it with its kernels."""
        self._is_closed = True
        if self._python is not None:
            self._python.kill()
            with self._lock:  # whoever waited for an answer has got its end
                self._python.communicate()

    def _begun(self) -> subprocess.Popen[str] | None:
        if self._python is None and not self._is_closed:
            pipe = subprocess.PIPE
            environment = {**os.environ, "PYTHONHASHSEED": "0"}
            self._python = subprocess.Popen(
                _WARM, stdin=pipe, stdout=pipe, text=True, env=environment, start_new_session=True
            )
        return self._python


class Fork:
    """Stands for a Popen with jupyter_client: a process that is no child of this one, and leads a group."""

    stdin = stdout = stderr = None

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._end = select.poll()
        self._descriptor = os.pidfd_open(pid)
        self._end.register(self._descriptor, select.POLLIN)
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None and self._end.poll(0):
            self.returncode = 1  # nobody knows it: it was the Python's to ask
            os.close(self._descriptor)
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

    @classmethod
    def of(cls, manager: Any, forks: Forks) -> Provisioner:
        made = cls(kernel_id=manager.kernel_id, kernel_spec=manager.kernel_spec, parent=manager)
        made.forks = forks
        return made

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> Any:
        is_ours = cmd[:3] == _LAUNCHER and not self.kernel_spec.env
        fork = self.forks.begin(cmd[2:], str(kwargs["cwd"]), dict(kwargs["env"])) if is_ours else None
        if fork is None:
            return await super().launch_kernel(cmd, **kwargs)
        self.process: Any = fork
        self.pid, self.pgid, self.cwd = fork.pid, fork.pid, kwargs["cwd"]
        return self.connection_info
