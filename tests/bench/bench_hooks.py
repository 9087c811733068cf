"""What `%load_ext devtrace` costs while nothing is traced and nothing fails: building, moving and training models.

One process, interleaved, CPU time of the one thread, each way's fastest run. Python's collector is off: it runs by the
number of objects in the process, and would be another's cost or not by chance.
"""

from __future__ import annotations

import contextlib
import gc
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

from devtrace.recording.context import hooks

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.bench_record import encoder, fastest

MODULES = 5_000
ROUNDS = 7
BUILD_BUDGET, MOVE_BUDGET, STEP_BUDGET = 1.5, 1.3, 1.01


@contextlib.contextmanager
def hooked() -> Iterator[None]:
    hooks.install()
    try:
        yield
    finally:
        hooks.uninstall()


def build() -> nn.Module:
    return nn.ModuleList(nn.Linear(2, 2) for _ in range(MODULES))


def seconds(work: Callable[[], object]) -> float:
    gc.collect()
    gc.disable()
    start = time.thread_time()
    work()
    spent = time.thread_time() - start
    gc.enable()
    return spent


def once(around: Callable[[], Any]) -> dict[str, float]:
    with around():
        spent = {"building": seconds(build)}
        model = build()
        spent["`.to()` to where they are"] = seconds(lambda: model.to("cpu"))
        spent["`.to()` to another device"] = seconds(lambda: model.to("meta"))
    return spent


def main() -> int:
    torch.set_num_threads(1)
    ways: dict[str, Callable[[], Any]] = {"plain": contextlib.nullcontext, "hooked": hooked}
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, around in ways.items():
            runs[name].append(once(around))
    best = {name: {what: min(run[what] for run in each) for what in each[0]} for name, each in runs.items()}
    step = encoder(64, 4)
    times = fastest(step, ways, 120)
    rows = [(what, plain, best["hooked"][what]) for what, plain in best["plain"].items()]
    budgets = [BUILD_BUDGET, MOVE_BUDGET, MOVE_BUDGET, STEP_BUDGET]
    rows.append(("a training step", times["plain"], times["hooked"]))
    print(f"| {MODULES:,} modules, nothing traced | plain ms | hooks ms | times | budget |\n|---|---:|---:|---:|---:|")
    for (what, plain, ours), budget in zip(rows, budgets, strict=True):
        print(f"| {what} | {plain * 1e3:.1f} | {ours * 1e3:.1f} | {ours / plain:.2f} | {budget} |")
    return int(any(ours > budget * plain for (_, plain, ours), budget in zip(rows, budgets, strict=True)))


if __name__ == "__main__":
    sys.exit(main())
