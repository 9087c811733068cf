"""This process's rank in its job, and the name under which it saves."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def rank_of_job() -> int | None:
    """Return this process's rank in a job, None where it runs alone.

    A job is one of torchrun, or of a launcher that sets the same variables. For an engine of ipyparallel, on which
    `%%px` runs a cell, it is the engine's number.
    """
    rank, size = os.environ.get("RANK", ""), os.environ.get("WORLD_SIZE", "")
    return int(rank) if rank.isdecimal() and size.isdecimal() else _engine()


def ranked_path(path: str | Path, rank: int | None) -> Path:
    """run.rank1.devtrace for run.devtrace and rank 1."""
    plain = Path(path)
    return plain if rank is None else plain.with_name(f"{plain.stem}.rank{rank}{plain.suffix}")


def _engine() -> int | None:
    app = sys.modules.get("ipyparallel.engine.app")
    if app is None or not app.IPEngine.initialized():
        return None
    number: int | None = app.IPEngine.instance().id
    return number
