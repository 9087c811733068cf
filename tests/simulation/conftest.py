"""Devices of a test of the simulation, and what it may ask of torch."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

import devtrace


@pytest.fixture
def one() -> Iterator[None]:
    with devtrace.simulate("cuda:1"):
        yield


@pytest.fixture
def settings(two: None) -> Iterator[None]:
    """Let a test ask torch for determinism, for warnings of waits, or for a warning each time."""
    yield
    torch.set_warn_always(False)
    torch.use_deterministic_algorithms(False)
    torch.cuda.set_sync_debug_mode("default")
