"""What memory with names costs: a step under a limit, the walk when it ends, the panel's sums.

A step at most 1.10 times one without a limit, in turns, the quickest of each. The walk at most 2 s with 5,000
parameters and 30,000 storages, and as many that no name leads to: CPU time of the thread. The panel's sums within 2 s
of a cell, in steps of which none keeps a message waiting for what a person notices.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

import devtrace
from devtrace.memory import observer
from devtrace.memory.inventory import listing_with_memory

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.bench_simulate import seconds, trainer

LIMIT_BUDGET, WALK_BUDGET, LISTING_BUDGET, SLICE_BUDGET = 1.10, 2.0, 2_000.0, 100.0
LAYERS, STORAGES, ROUNDS, STEPS = 2_500, 30_000, 15, 5
Row = tuple[str, float, str, float]


def limit_rows() -> Iterator[Row]:
    """Steps of the small transformer in turns, with and without a limit."""
    devices = {"cuda:1": float("inf"), "cuda:1,8GB": float("inf")}
    steps = {}
    for spec in devices:
        with devtrace.simulate(spec):
            steps[spec] = trainer("cuda:0", 64, 4)
            steps[spec]()
    for _ in range(ROUNDS):
        for spec in devices:
            with devtrace.simulate(spec):
                steps[spec]()
                devices[spec] = min(devices[spec], *(seconds(steps[spec], 1) for _ in range(STEPS)))
    yield "a step with a limit, × without", devices["cuda:1,8GB"] / devices["cuda:1"], ".2f", LIMIT_BUDGET


def state() -> tuple[Any, ...]:
    """Return what leads to 30,000 storages: parameters, gradients, Adam's state, a list, graphs."""
    net = nn.Sequential(*(nn.Linear(8, 8, device="cuda") for _ in range(LAYERS)))
    adam = torch.optim.Adam(net.parameters(), foreach=False)
    x = torch.ones(2, 8, device="cuda")
    net(x).sum().backward()
    adam.step()
    kept = [torch.ones(4, device="cuda") for _ in range(STORAGES - 10 * LAYERS)]
    return net, adam, kept, net(x)


def full_rows() -> Iterator[Row]:
    """A device with such a state: the panel's listing of it, then memory ends while a list is made of tensors."""
    with devtrace.simulate("cuda:1,400MB"):
        names = dict(zip(("net", "adam", "kept", "y"), state(), strict=True))
        best = [min(each) for each in zip(*(listed(names) for _ in range(3)), strict=True)]
        yield f"the panel's sums of {STORAGES:,} storages, ms", best[0], ".0f", LISTING_BUDGET
        yield "a message meanwhile waits, ms", best[1], ".0f", SLICE_BUDGET
        for in_hand, label in ((0, ""), (STORAGES, ", and as many without a name")):
            spent = walked(names, in_hand)
            yield f"the walk at the error, 5,000 parameters, {STORAGES:,} storages{label}, s", spent, ".2f", WALK_BUDGET


def walked(kept: dict[str, Any], in_hand: int) -> float:
    """Return the CPU seconds of the walk when memory ends."""
    spent = 0.0
    module: Any = observer
    own = module.census

    def timed(*args: Any, **options: Any) -> Any:
        nonlocal spent
        start = time.thread_time()
        found = own(*args, **options)
        spent = time.thread_time() - start
        return found

    module.census = timed
    try:
        with devtrace.record():
            made = [torch.ones(4 if index < in_hand else 1 << 40, device="cuda") for index in range(in_hand + 1)]
            raise AssertionError(len(kept), len(made))
    except torch.OutOfMemoryError:
        return spent
    finally:
        module.census = own


def listed(names: dict[str, Any]) -> tuple[float, float]:
    """CPU time of one listing and of its longest step, in ms."""
    steps = listing_with_memory(names, simulated=True)
    slices = []
    while True:
        start = time.thread_time()
        ended = next(steps, "ended")
        slices.append((time.thread_time() - start) * 1000)
        if ended == "ended":
            return sum(slices), max(slices)


def main() -> int:
    torch.set_num_threads(1)
    rows = [*limit_rows(), *full_rows()]
    print("| memory of a simulated device | measured | budget |\n|---|---:|---:|")
    for what, measured, form, budget in rows:
        print(f"| {what} | {measured:{form}} | {budget:g} |")
    return int(any(measured > budget for _, measured, _, budget in rows))


if __name__ == "__main__":
    sys.exit(main())
