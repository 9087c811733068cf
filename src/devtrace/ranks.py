"""The ranks of one job: a trace each, saved under its own name, and read together as one with lanes for every rank."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np

from .trace import Trace


def rank_of_job() -> int | None:
    """This process's rank in a job of torchrun (or what sets the same variables); None where it stands alone."""
    rank, size = os.environ.get("RANK", ""), os.environ.get("WORLD_SIZE", "")
    return int(rank) if rank.isdecimal() and size.isdecimal() else None


def ranked_path(path: str | Path, rank: int | None) -> Path:
    """run.rank1.devtrace for run.devtrace and rank 1."""
    plain = Path(path)
    return plain if rank is None else plain.with_name(f"{plain.stem}.rank{rank}{plain.suffix}")


def with_rank(trace: Trace, rank: int | None) -> Trace:
    """The trace, its threads marked as those of a rank."""
    if rank is None:
        return trace
    threads = dict(trace.values["threads"])
    threads["rank"] = np.full(len(trace.threads), rank, dtype=np.int32)
    return replace(trace, values={**trace.values, "threads": threads}, _tables={})
