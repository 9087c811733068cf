"""`make lab`: start JupyterLab, with one sentence where the port that was asked for is taken.

Everything after the notebook is JupyterLab's own argument.
"""

from __future__ import annotations

import os
import socket
import sys


def asked_port(arguments: list[str]) -> int | None:
    """The port that `--port 8899` or `--port=8899` asks for."""
    for name, value in zip(arguments, [*arguments[1:], ""], strict=True):
        key, _, joined = name.partition("=")
        text = joined or value
        if key in ("--port", "-p", "--ServerApp.port") and text.isdigit():
            return int(text)
    return None


def is_taken(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False


def main(arguments: list[str]) -> None:
    port = asked_port(arguments)
    if port is not None and is_taken(port):
        raise SystemExit(
            f"port-in-use: got --port {port}, which another program listens on; JupyterLab needs a free one; "
            "name another port, or none to let JupyterLab choose."
        )
    root = ["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    os.execv(sys.executable, [sys.executable, "-m", "jupyterlab", *root, *arguments])


if __name__ == "__main__":
    main(sys.argv[1:])
