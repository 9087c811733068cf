"""Installs what the accelerator's backend is built with, where the system's package manager may be used.

PYTHONPATH=tests:tests/harness python -m accelerator      what `make unit` runs first
"""

from __future__ import annotations

from accelerator import why_not
from e2e.chromium import install, may_install

if __name__ == "__main__":
    if why_not() and may_install():
        print("installing a C++ compiler with apt-get for the accelerator's backend")
        install("g++", "ninja-build")
    if why_not():
        print(f"tests of a genuine device will not run: {why_not()}")
