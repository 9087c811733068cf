"""What recording with a budget costs: training loops with a budget of 10 % and plain, in turns, in one process.

CPU time of the thread, which a busy machine disturbs least; of each way the quickest run. A run may take 1.10 times the
plain one, and 0.2 s for what is learned of its first steps.

    python tests/bench/bench_budget.py [PROGRAM ...] [STEPS ...]
"""

from __future__ import annotations

import os
import resource
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import torch
from torch import nn

from devtrace.budget.budget import Budget
from devtrace.recording.recording import Recording

BUDGET, AT_ANY_RATE = 1.10, 0.2
STEPS = 1000
LONG = 10_000
PAIRS = 5
GROWTH_BUDGET = 16.0
"""MB that a further run may add to the most memory that the process ever had."""

Step = Callable[[], object]


def training(model: nn.Module, x: torch.Tensor, optimizer: str = "Adam") -> Step:
    """Return a step of training, as most notebooks have it."""
    steps = getattr(torch.optim, optimizer)(model.parameters(), lr=0.001)
    criterion = nn.CrossEntropyLoss()
    target = torch.randint(10, (len(x),))

    def step() -> torch.Tensor:
        steps.zero_grad()
        loss = criterion(model(x), target)
        loss.backward()
        steps.step()
        return loss  # type: ignore[no-any-return]

    return step


def mlp(optimizer: str = "Adam") -> Step:
    layers = nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10)
    return training(nn.Sequential(*layers), torch.rand(64, 64), optimizer)


def mlp_sgd() -> Step:
    return mlp("SGD")


def cnn() -> Step:
    first = nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)
    second = nn.Conv2d(8, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 11 * 11, 10)
    return training(nn.Sequential(*first, *second), torch.rand(16, 1, 28, 28))


class Last(nn.Module):
    """Gives the last output of a sequence's model to a layer."""

    def __init__(self, model: nn.Module, width: int) -> None:
        super().__init__()
        self.model, self.head = model, nn.Linear(width, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.model(x)
        return self.head((out[0] if isinstance(out, tuple) else out)[:, -1])  # type: ignore[no-any-return]


def transformer() -> Step:
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    return training(Last(model, 32), torch.rand(8, 16, 32))


def lstm() -> Step:
    return training(Last(nn.LSTM(32, 64, 2, batch_first=True), 64), torch.rand(16, 20, 32))


def logged() -> Step:
    """Read a value each step, show it in a bar, and write a line every fiftieth."""
    step, seen, bar = mlp(), list[float](), None
    with suppress(ImportError):
        from tqdm import tqdm  # type: ignore[import-untyped]

        bar = tqdm(file=Path(os.devnull).open("w"))  # noqa: SIM115 (as long as the process)

    def run() -> None:
        seen.append(step().item())  # type: ignore[attr-defined]
        if bar is not None:
            bar.update()
            bar.set_postfix(loss=seen[-1])
        if len(seen) % 50 == 0:
            f"{torch.tensor(seen[-50:]).mean():.3f}"

    return run


PROGRAMS = {each.__name__: each for each in (mlp, mlp_sgd, logged, cnn, transformer, lstm)}
ROWS = [*((name, STEPS) for name in PROGRAMS), ("mlp", LONG), ("mlp_sgd", LONG)]


def seconds(step: Step, steps: int, *, recorded: bool) -> float:
    start = time.thread_time()
    recording = Recording(100_000, None, partial(Budget, share=BUDGET - 1)) if recorded else None
    if recording is not None:
        recording.start()
    try:
        for _ in range(steps):
            step()
    finally:
        if recording is not None:
            recording.stop()
    return time.thread_time() - start


def most_memory() -> float:
    """Return the MB that this process had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def compared(name: str, steps: int) -> bool:
    """Print a row; return whether it is over its budget."""
    torch.manual_seed(0)
    step = PROGRAMS[name]()
    seconds(step, 20, recorded=False)
    pairs: list[tuple[float, float]] = []
    before = 0.0
    for _ in range(PAIRS if steps < LONG else 2):
        before = before or (most_memory() if pairs else 0.0)
        pairs.append((seconds(step, steps, recorded=False), seconds(step, steps, recorded=True)))
    plain, ours = (min(column) for column in zip(*pairs, strict=True))
    median = statistics.median(second / first for first, second in pairs)
    beyond, grown = (ours - AT_ANY_RATE) / plain, most_memory() - before
    cells = f"{1000 * plain / steps:.2f}", f"{ours / plain:.2f}", f"{median:.2f}", f"{beyond:.2f}", f"{BUDGET}"
    print(f"| {name} | {steps:,} | {' | '.join(cells)} | {grown:.1f} | {os.getloadavg()[0]:.1f} |", flush=True)
    return beyond > BUDGET or grown > GROWTH_BUDGET


def main(words: list[str]) -> int:
    torch.set_num_threads(1)
    names, steps = [word for word in words if word in PROGRAMS], [int(word) for word in words if word.isdigit()]
    rows = [row for row in ROWS if (not names or row[0] in names) and (not steps or row[1] in steps)]
    print("| a budget of 10 % | steps | plain ms | × plain | median | × beyond 0.2 s | budget | MB | load |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    over = [compared(*row) for row in rows or [(name, each) for name in names for each in steps]]
    return int(any(over))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
