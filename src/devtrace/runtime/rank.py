"""This process's rank in its job, the name under which it saves, and the signals that end it."""

import os
import signal
import sys
from pathlib import Path
from typing import Final

LAUNCHERS: Final = (
    ("RANK", "WORLD_SIZE"),  # torchrun, accelerate, Ray Train
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),  # MPICH and Intel MPI
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
)
"""Variables in which a launcher gives the rank and the number of ranks, torchrun first: it may run under another."""

ENDING: Final = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Signals that end a program; Windows has no SIGHUP."""


def rank_of_job() -> int | None:
    """Return this process's rank in a job, None where it runs alone.

    Launchers give it in the environment. For an engine of ipyparallel, on which `%%px` runs a cell, it is the engine's
    number.
    """
    return next((rank for rank in map(_rank_by, LAUNCHERS) if rank is not None), _engine())


def _rank_by(names: tuple[str, str]) -> int | None:
    """Return the rank that a launcher has set. All but torchrun set it for a job of one process too, which is none."""
    rank, size = (os.environ.get(name, "") for name in names)
    if not (rank.isdecimal() and size.isdecimal()):
        return _local_rank(size) if names == LAUNCHERS[0] else None
    return int(rank) if names == LAUNCHERS[0] or int(size) > 1 else None


def _local_rank(size: str) -> int | None:
    """Return the rank in a job of Lightning, which gives the number on this machine, and which machine it is."""
    local, node = os.environ.get("LOCAL_RANK", ""), os.environ.get("NODE_RANK", "")
    if not (local.isdecimal() and node.isdecimal() and size.isdecimal()):
        return None
    per_node = os.environ.get("LOCAL_WORLD_SIZE", "")
    if int(node) == 0:
        return int(local)
    return int(node) * int(per_node) + int(local) if per_node.isdecimal() else None


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
