"""What recording with a budget costs: a transformer encoder's training loop, against plain PyTorch in one process.

The recording lasts for the whole run. Blocks of steps take turns with plain ones in a thread that was there before it,
which it does not record. CPU time of each thread, which a busy machine disturbs least.

    python tests/bench/bench_budget.py [STEPS [STEPS FOR MEMORY]]
"""

from __future__ import annotations

import gc
import os
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import torch

from devtrace.recording.recording import Recording

BUDGET = 1.10
STEPS, BLOCK = 2000, 20
MEMORY_STEPS = 10_000
GROWTH_BUDGET = 16.0
"""MB that the second half of a long run may add to what is kept."""

Step = Callable[[], None]


def encoder(width: int, batch: int) -> Step:
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True)  # as in bench_record
    model = torch.nn.TransformerEncoder(layer, 6, enable_nested_tensor=False)
    optimizer = torch.optim.Adam(model.parameters())
    x = torch.rand(batch, 16, width)

    def step() -> None:
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()

    return step


def logging(step: Step) -> Step:
    """Read a value each step, and write a line every fiftieth."""
    seen: list[float] = []
    value = torch.ones(())

    def logged() -> None:
        step()
        seen.append(value.item())
        if len(seen) % 50 == 0:
            f"{torch.tensor(seen[-50:]).mean():.3f}"

    return logged


def seconds(step: Step, steps: int) -> float:
    start = time.thread_time()
    for _ in range(steps):
        step()
    return time.thread_time() - start


def compared(step: Step, plain: Step, steps: int) -> tuple[float, float, Recording]:
    """Return recorded over plain: by their sums, and the median of the blocks."""
    with ThreadPoolExecutor(1) as other:
        other.submit(torch.set_num_threads, 1).result()
        other.submit(seconds, plain, 5).result()
        recording = Recording(100_000, None, 0.10)
        recording.start()
        try:
            pairs = [
                (seconds(step, BLOCK), other.submit(seconds, plain, BLOCK).result()) for _ in range(steps // BLOCK)
            ]
        finally:
            recording.stop()
    ours, theirs = (sum(column) for column in zip(*pairs, strict=True))
    return ours / theirs, statistics.median(one / two for one, two in pairs), recording


def growth(steps: int) -> float:
    """Return the MB that the second half of a run adds to what a recording holds."""
    layer = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.01)
    x = torch.rand(4, 8)
    recording = Recording(100_000, None, 0.10)
    recording.start()
    kept = []
    try:
        tracemalloc.start()
        for _ in range(2):
            for _ in range(steps // 2):
                optimizer.zero_grad()
                layer(x).sum().backward()
                optimizer.step()
            gc.collect()
            kept.append(tracemalloc.get_traced_memory()[0] / 1e6)
    finally:
        tracemalloc.stop()
        recording.stop()
    return kept[1] - kept[0]


def main() -> int:
    torch.set_num_threads(1)
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else STEPS
    print(f"| {steps:,} steps, a budget of 10 % | × plain | median block | budget | load |\n|---|---:|---:|---:|---:|")
    worst = 0.0
    for name, around in {"training step": lambda step: step, "with .item(), a log every 50": logging}.items():
        small, other = encoder(64, 4), encoder(64, 4)
        seconds(small, 3)
        mean, median, _ = compared(around(small), around(other), steps)
        worst = max(worst, mean)
        print(f"| {name} | {mean:.3f} | {median:.3f} | {BUDGET} | {os.getloadavg()[0]:.1f} |", flush=True)
    grown = growth(int(sys.argv[2]) if len(sys.argv) > 2 else MEMORY_STEPS)
    print(f"| MB added by the second half of {MEMORY_STEPS:,} steps | {grown:.1f} | | {GROWTH_BUDGET} | |")
    return int(worst > BUDGET or grown > GROWTH_BUDGET)


if __name__ == "__main__":
    sys.exit(main())
