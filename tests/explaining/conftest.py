"""What a loaded extension has in place, on a simulated device."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import devtrace
from devtrace.recording.context import hooks


@pytest.fixture
def hooked() -> Iterator[None]:
    hooks.install()
    with devtrace.simulate("cuda:2"):
        yield
    hooks.uninstall()
