"""Processes that serve a front end on a free port, until a test has ended."""

from __future__ import annotations

import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(name: str, command: list[str], url: str, log: Path, limit: float, **options: Any) -> Iterator[None]:
    """Run a server for the time of the block, once a page that says that it is well is there."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, **options)
    try:
        wait_for(process, name, url, log, limit)
        yield
    finally:
        process.terminate()
        process.wait(timeout=limit)


def wait_for(process: subprocess.Popen[bytes], name: str, url: str, log: Path, limit: float) -> None:
    """Wait until a page that says that the server is well is there."""
    end = time.monotonic() + limit
    while time.monotonic() < end and process.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=limit).close()
            return
        except OSError:  # nobody listens, or the connection is closed again
            time.sleep(0.05)
    raise AssertionError(f"no {name} after {limit} s or it ended:\n{log.read_text()[-3000:]}")
