"""Finds a Chromium for the end-to-end tests, and installs one where the system's package manager may be used.

python tests/e2e/chromium.py      what `make e2e` runs first
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
HOW_TO_GET_IT = (
    "no Chromium found: install one (`apt-get install chromium`, `brew install --cask chromium`, or Google Chrome), "
    "or name it in DEVTRACE_CHROMIUM"
)


def find() -> str | None:
    """Return the path of a Chromium or Chrome, None where there is none."""
    named = os.environ.get("DEVTRACE_CHROMIUM")
    return named or next((path for name in NAMES if (path := shutil.which(name))), None)


def may_install() -> bool:
    """Return whether this is root on Debian or Ubuntu."""
    return sys.platform == "linux" and os.geteuid() == 0 and shutil.which("apt-get") is not None


def install(*packages: str) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    patient = ["-o", "DPkg::Lock::Timeout=300", "-o", "Acquire::Retries=2"]  # seconds, for another run of apt's
    quiet = ["apt-get", "-qq", "-o", "Dpkg::Use-Pty=0", *patient]
    subprocess.run([*quiet, "update"], env=environment, check=False)
    subprocess.run([*quiet, "install", "-y", "--no-install-recommends", *packages], env=environment, check=False)


if __name__ == "__main__":
    if find() is None and may_install():
        print("installing Chromium with apt-get for the end-to-end tests")
        install("chromium")
    if find() is None:
        print(f"end-to-end tests will not run: {HOW_TO_GET_IT}", file=sys.stderr)
        sys.exit(bool(os.environ.get("CI")))  # which asks them all: better now than in twelve minutes
