"""On a simulated device, recording off: at most 2.8 times a small step of the CPU, 1.3 times a big one, 6 a loop."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial

import torch
from torch import nn

import devtrace

Step = Callable[[], object]

# name, width, batch, steps per round, rounds, most times the plain CPU step
CASES = [("6 layers, d=64, batch 4", 64, 4, 5, 12, 2.8), ("6 layers, d=512, batch 32", 512, 32, 1, 5, 1.3)]
LOOPS = 6.0  # most times the plain loop


def trainer(device: str, width: int, batch: int) -> Step:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True)
    model = nn.TransformerEncoder(layer, 6, enable_nested_tensor=False).to(device)
    update = torch.optim.Adam(model.parameters(), foreach=True)  # by name: its default differs by device
    x = torch.randn(batch, 16, width).to(device)

    def step() -> None:
        update.zero_grad()
        (model(x) - x).pow(2).mean().backward()
        update.step()

    return step


def seconds(step: Step, steps: int) -> float:
    """CPU time of the one thread, which a busy machine disturbs least."""
    start = time.thread_time()
    for _ in range(steps):
        step()
    return (time.thread_time() - start) / steps


def read(x: torch.Tensor) -> None:
    total = 0.0
    for index in range(len(x)):
        total += x[index].item()


def written(x: torch.Tensor) -> None:
    for index in range(len(x)):
        x[index] = x[index] * 0.5


def summed(x: torch.Tensor) -> None:
    total = torch.zeros((), device=x.device)
    for each in x:
        total = total + each


def looped(loop: Callable[[torch.Tensor], object]) -> tuple[float, float]:
    """Return the seconds of a loop over 300 elements, plain and simulated."""
    plain, simulation, bare, simulated = torch.rand(300), devtrace.simulate("cuda:1"), [], []
    for _ in range(15):
        bare.append(seconds(partial(loop, plain), 1))
        with simulation:
            simulated.append(seconds(partial(loop, plain.to("cuda")), 1))
    return min(bare), min(simulated)


def main() -> int:
    torch.set_num_threads(1)
    failed = False
    print("| step | CPU ms | simulated ms | times | budget |\n|---|---:|---:|---:|---:|")
    for name, width, batch, steps, rounds, budget in CASES:
        plain, simulation = trainer("cpu", width, batch), devtrace.simulate("cuda:1")
        plain()
        bare, simulated = [], []
        with simulation:
            step = trainer("cuda:0", width, batch)
            step()
        for _ in range(rounds):  # interleaved, and the least of each: other work on the machine hits both alike
            bare.append(seconds(plain, steps))
            with simulation:
                simulated.append(seconds(step, steps))
        times = min(simulated) / min(bare)
        failed |= times > budget
        print(f"| {name} | {min(bare) * 1e3:.1f} | {min(simulated) * 1e3:.1f} | {times:.2f} | {budget} |")
    for loop in (read, written, summed):
        plain_loop, simulated_loop = looped(loop)
        times = simulated_loop / plain_loop
        failed |= times > LOOPS
        name = f"300 elements {loop.__name__}"
        print(f"| {name} | {plain_loop * 1e3:.2f} | {simulated_loop * 1e3:.2f} | {times:.2f} | {LOOPS} |")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
