"""What recording with a budget costs: a transformer encoder's training loop, against plain PyTorch in one process.

The recording lasts for the whole run. Blocks of steps take turns with plain ones in a thread that was there before it,
which it does not record. CPU time of each thread, which a busy machine disturbs least.

    python tests/bench/bench_budget.py [STEPS [LONG STEPS]]
"""

from __future__ import annotations

import os
import resource
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import torch

from devtrace.recording.budget.sampling import Sampling
from devtrace.recording.recording import Recording

BUDGET, OFF_BUDGET = 1.10, 1.01
STEPS, BLOCK = 2000, 20
OFF_STEPS = 500
LONG_STEPS = 10_000
GROWTH_BUDGET = 16.0
"""MB that the second half of a run may add to the most memory that the process ever had."""

Step = Callable[[], None]


def encoder() -> Step:
    width, batch = 64, 4
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


def logged() -> Step:
    """Read a value each step, and write a line every fiftieth."""
    step, seen, value = encoder(), list[float](), torch.ones(())

    def run() -> None:
        step()
        seen.append(value.item())
        if len(seen) % 50 == 0:
            f"{torch.tensor(seen[-50:]).mean():.3f}"

    return run


def seconds(step: Step, steps: int) -> float:
    start = time.thread_time()
    for _ in range(steps):
        step()
    return time.thread_time() - start


def most_memory() -> float:
    """Return the MB that this process had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def compared(step: Step, plain: Step, steps: int) -> tuple[float, float, float]:
    """Return recorded over plain, by their sums and the median of the blocks, and the MB that the second half added."""
    pairs = []
    with ThreadPoolExecutor(1) as other:
        other.submit(torch.set_num_threads, 1).result()
        other.submit(seconds, plain, 5).result()
        recording = Recording(100_000, None, 0.10)
        recording.start()
        try:
            for block in range(steps // BLOCK):
                if block == steps // BLOCK // 2:
                    half = most_memory()
                pairs.append((seconds(step, BLOCK), other.submit(seconds, plain, BLOCK).result()))
            grown = most_memory() - half
        finally:
            recording.stop()
    ours, theirs = (sum(column) for column in zip(*pairs, strict=True))
    return ours / theirs, statistics.median(one / two for one, two in pairs), grown


def while_off(step: Step, plain: Step) -> float:
    """Return recorded over plain, each way's fastest step, while a loop repeats and nothing of it is recorded."""
    ours = theirs = float("inf")
    with ThreadPoolExecutor(1) as other:
        other.submit(torch.set_num_threads, 1).result()
        other.submit(seconds, plain, 5).result()
        recording = Recording(100_000, None, 0.10)
        recording.start()
        try:
            sampling = recording.recorder.budget
            assert isinstance(sampling, Sampling)
            for _ in range(OFF_STEPS):  # the same lines each time: newer Pythons would record a new one
                sampling._wanted = sys.maxsize
                was_off, one, other_one = sampling.off, seconds(step, 1), other.submit(seconds, plain, 1).result()
                ours = min(ours, one if was_off and sampling.off else ours)
                theirs = min(theirs, other_one)
        finally:
            recording.stop()
    return ours / theirs


def by_itself(step: Step, plain: Step) -> float:
    """Return the same ratio where nothing is recorded at all: what the measurement itself may be off by."""
    ours = theirs = float("inf")
    with ThreadPoolExecutor(1) as other:
        other.submit(torch.set_num_threads, 1).result()
        other.submit(seconds, plain, 5).result()
        for _ in range(OFF_STEPS):
            ours = min(ours, seconds(step, 1))
            theirs = min(theirs, other.submit(seconds, plain, 1).result())
    return ours / theirs


def main() -> int:
    torch.set_num_threads(1)
    given = [int(each) for each in sys.argv[1:]]
    steps, long = (*given, *(STEPS, LONG_STEPS)[len(given) :])
    rows = [
        ("training step", steps, encoder),
        ("with .item(), a log every 50", steps, logged),
        ("training step", long, encoder),
    ]
    step, plain = encoder(), encoder()
    seconds(step, 3)
    control, standing = by_itself(step, plain), while_off(step, plain)
    is_over = standing > OFF_BUDGET * max(control, 1.0)
    print("| nothing recorded | × plain | two plain ones | budget |\n|---|---:|---:|---:|")
    print(f"| training step | {standing:.3f} | {control:.3f} | {OFF_BUDGET} |\n")
    print("| a budget of 10 % | steps | × plain | median block | budget | MB of the second half | load |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name, count, make in rows:
        step, plain = make(), make()
        seconds(step, 3)
        mean, median, grown = compared(step, plain, count)
        is_over |= mean > BUDGET or grown > GROWTH_BUDGET
        load = os.getloadavg()[0]
        print(f"| {name} | {count:,} | {mean:.3f} | {median:.3f} | {BUDGET} | {grown:.1f} | {load:.1f} |", flush=True)
    return int(is_over)


if __name__ == "__main__":
    sys.exit(main())
