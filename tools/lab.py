"""`make lab`: start JupyterLab on the user's own copy of a notebook; one sentence where the port asked for is taken.

python tools/lab.py NOTEBOOK [JupyterLab's own arguments]
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import sys
from pathlib import Path
from typing import Final

OWN: Final = "yours"
"""The folder of the copies, beside the notebooks; git ignores it, and `make clean` leaves it."""


def own_copies(folder: Path) -> Path:
    """Copy the notebooks of a folder to where their user may save; what was saved there stays as it is.

    A copy that nobody has changed follows its notebook.
    """
    own = folder / OWN
    record = own / ".copied.json"
    copied: dict[str, str] = json.loads(record.read_text()) if record.exists() else {}
    for notebook in sorted({*folder.glob("*.ipynb"), *folder.glob("zh/*.ipynb")}):
        name = notebook.relative_to(folder).as_posix()
        copy = own / name
        if not copy.exists() or _digest(copy) == copied.get(name):
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(notebook, copy)
            copied[name] = _digest(copy)
    record.write_text(json.dumps(copied, indent=1))
    return own


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


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
    own = own_copies(Path(notebook).parent)
    print(f"Your copies of the notebooks are in {own}; git ignores what you save there.", flush=True)
    root = ["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    # The default page, not a file to open: the address that --no-browser prints leads to the notebook too.
    first = f"--LabApp.default_url=/lab/tree/{(own / Path(notebook).name).as_posix()}"
    os.execv(sys.executable, [sys.executable, "-m", "jupyterlab", first, *root, *arguments])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
