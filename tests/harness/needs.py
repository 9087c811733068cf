"""Packages that a test needs beside devtrace's own: without one it is skipped, and fails under CI=true."""

from __future__ import annotations

import importlib
import os
from importlib.util import find_spec
from typing import Any

import pytest
import torch

from devtrace.runtime.requirements import release_of

CI = os.environ.get("CI") == "true"


def imported(package: str) -> Any:
    """Import a package of requirements/dev.txt."""
    if CI:
        return importlib.import_module(package)
    return pytest.importorskip(package, reason=f"{package} is not installed (requirements/dev.txt)")


def present(is_there: object, how_to_get_it: str) -> None:
    """Skip a test, or what a fixture gives, where a program that it drives is not there."""
    if not is_there:
        (pytest.fail if CI else pytest.skip)(how_to_get_it)


def installed(package: str) -> pytest.MarkDecorator:
    """Mark a test that runs with a package of requirements/systems.txt."""
    missing = find_spec(package) is None and not CI
    return pytest.mark.skipif(missing, reason=f"{package} is not installed (requirements/systems.txt)")


def torch_of(release: tuple[int, int]) -> pytest.MarkDecorator:
    """Mark a test of what devtrace does from a release of torch on; the limits in `docs/limits.md` say of what."""
    needed = ".".join(map(str, release))
    return pytest.mark.skipif(release_of(torch.__version__) < release, reason=f"needs torch {needed} (docs/limits.md)")
