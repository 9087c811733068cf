"""What the environment says of the job that this process is a part of."""

from __future__ import annotations

import os


def rank_of_job() -> int | None:
    """This process's rank in a job of torchrun (or what sets the same variables); None where it stands alone."""
    rank, size = os.environ.get("RANK", ""), os.environ.get("WORLD_SIZE", "")
    return int(rank) if rank.isdecimal() and size.isdecimal() else None
