"""Every Python that a test starts (kernel, server, script) sees this checkout's sources, whatever is installed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from warm import Warm

SOURCES = str(Path(__file__).parents[1] / "src")
os.environ["PYTHONPATH"] = os.pathsep.join([SOURCES, *filter(None, [os.environ.get("PYTHONPATH")])])


@pytest.fixture(scope="session")
def warm() -> Iterator[Warm]:
    """A Python with torch loaded, whose forks run programs."""
    with Warm() as warm:
        yield warm
