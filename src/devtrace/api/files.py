"""Traces from files: what devtrace saved, what torch.profiler exported, and two of them compared."""

from __future__ import annotations

from pathlib import Path

from devtrace.api.results import Trace
from devtrace.interchange import torch_profiler
from devtrace.trace import merge_ranks


def load(*files: str | Path) -> Trace:
    """Read a saved trace; of several files, the ranks of one job, one trace with lanes for each."""
    return Trace.of(merge_ranks.load(*files))


def from_profiler(path: str | Path) -> Trace:
    """Read what torch.profiler exported as a Chrome trace."""
    return Trace.of(torch_profiler.from_profiler(path))
