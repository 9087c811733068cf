"""What a test of a simulation may ask of torch, and who takes it back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture
def settings(two: None) -> Iterator[None]:
    """Let a test ask torch for determinism, or for warnings of waits."""
    yield
    torch.use_deterministic_algorithms(False)
    torch.cuda.set_sync_debug_mode("default")
