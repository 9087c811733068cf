"""`make lab`: start JupyterLab on a notebook, with one sentence where the port that was asked for is taken.

python tools/lab.py NOTEBOOK [JupyterLab's own arguments]
"""

from __future__ import annotations

import os
import socket
import sys


def asked_port(arguments: list[str]) -> int | None:
    """Return the port that `--port 8899` or `--port=8899` asks for."""
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


def main(notebook: str, arguments: list[str]) -> None:
    port = asked_port(arguments)
    if port is not None and is_taken(port):
        raise SystemExit(
            f"port-in-use: got --port {port}, which another program listens on; JupyterLab needs a free one; "
            "name another port, or none to let JupyterLab choose."
        )
    root = ["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    # The default page, not a file to open: the address that --no-browser prints leads to the notebook too.
    first = f"--LabApp.default_url=/lab/tree/{notebook}"
    os.execv(sys.executable, [sys.executable, "-m", "jupyterlab", first, *root, *arguments])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
