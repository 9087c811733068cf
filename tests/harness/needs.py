"""Packages that a test needs beside devtrace's own: without one it is skipped, and fails under CI=true."""

from __future__ import annotations

import importlib
import os
from importlib.util import find_spec
from typing import Any

import pytest

CI = os.environ.get("CI") == "true"


def imported(package: str) -> Any:
    """Import a package of requirements/dev.txt."""
    if CI:
        return importlib.import_module(package)
    return pytest.importorskip(package, reason=f"{package} is not installed (requirements/dev.txt)")


def installed(package: str) -> pytest.MarkDecorator:
    """Mark a test that runs with a package of requirements/systems.txt."""
    missing = find_spec(package) is None and not CI
    return pytest.mark.skipif(missing, reason=f"{package} is not installed (requirements/systems.txt)")
