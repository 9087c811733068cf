"""64 ranks of 100,000 ops each, from their files to one diagnosed trace: at most 20 s and 2 GiB."""

from __future__ import annotations

import importlib
import resource
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import devtrace
from devtrace.api.results import Trace
from devtrace.jobs.merge import with_rank
from devtrace.trace import format

loop_trace: Any = importlib.import_module("bench_diagnose").loop_trace

RANKS = 64
OPS = 100_000
BUDGETS = {"s": 20.0, "GiB": 2.0}


def saved(folder: str) -> list[Path]:
    """Save the traces of a job's ranks, each with its report."""
    trace = replace(loop_trace(OPS), recorded="2026-11-21T12:00:00+00:00")
    carrying = devtrace.diagnose(trace).trace
    files = [Path(folder, f"run.rank{rank}.devtrace") for rank in range(RANKS)]
    for rank, file in enumerate(files):
        format.save(with_rank(carrying, rank), file)
    return files


def job() -> Trace:
    """Return the diagnosed trace of all ranks."""
    with tempfile.TemporaryDirectory() as folder:
        return devtrace.diagnose(devtrace.load(*saved(folder))).trace


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        files = saved(folder)
        start = time.perf_counter()
        merged = devtrace.load(*files)
        loaded = time.perf_counter() - start
        devtrace.diagnose(merged)
        took = time.perf_counter() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print("| ranks | got | budget |\n|---|---:|---:|")
    print(f"| {RANKS} ranks of {OPS:,} ops loaded and merged, s | {loaded:.1f} | |")
    print(f"| and diagnosed, s | {took:.1f} | {BUDGETS['s']:.0f} |")
    print(f"| most memory, GiB | {memory:.2f} | {BUDGETS['GiB']:.0f} |")
    return int(took > BUDGETS["s"] or memory > BUDGETS["GiB"])


if __name__ == "__main__":
    sys.exit(main())
