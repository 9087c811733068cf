"""Every Python that a test starts (kernel, server, script) sees this checkout's sources, and speaks English."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from warm import Warm

SOURCES = str(Path(__file__).parents[1] / "src")
os.environ["DEVTRACE_LANGUAGE"] = "en"
os.environ["PYTHONPATH"] = os.pathsep.join([SOURCES, *filter(None, [os.environ.get("PYTHONPATH")])])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what is slow: on two workers the end of a run is then made of short tests."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.fixture(scope="session")
def warm() -> Iterator[Warm]:
    """A Python with torch loaded, whose forks run programs."""
    with Warm() as warm:
        yield warm
