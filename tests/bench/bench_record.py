"""What recording costs: a transformer encoder's training step, in one process, interleaved, each way's fastest run.

CPU time of the one thread, which a busy machine disturbs least, and without what a profiler does when it stops. Ops
this small are near the worst case: the more a kernel has to do, the less recording weighs.
"""

from __future__ import annotations

import contextlib
import gc
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._debug_mode import DebugMode
from torch.utils._python_dispatch import TorchDispatchMode

from devtrace.recording.recording import Recording

ROUNDS = 80
SMALL_BUDGET, LARGE_BUDGET, MEMORY_BUDGET = 1.6, 1.1, 128.0
Step = Callable[[], None]
Ways = dict[str, Callable[[], Any]]


class Empty(TorchDispatchMode):
    """A mode that does nothing, and lets torch.compile do the same."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def encoder(width: int, batch: int, layers: int = 6) -> Step:
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True)  # as in bench_simulate
    model = torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
    optimizer = torch.optim.Adam(model.parameters())
    x = torch.rand(batch, 16, width)

    def step() -> None:
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()

    return step


class Recorded(contextlib.ExitStack):
    """A recording without its end: what assembling costs is told apart."""

    def __enter__(self) -> Recorded:
        recording = Recording(10**9, None)
        recording.start()
        self.callback(recording.stop)
        return self


def profiler() -> Any:
    return torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], with_stack=True, record_shapes=True, with_modules=True
    )


def debug_mode() -> Any:
    return DebugMode(record_nn_module=True, record_stack_trace=True)


def seconds(step: Step, around: Callable[[], Any]) -> float:
    with around():
        step()
        start = time.thread_time()
        step()
        return time.thread_time() - start


def fastest(step: Step, ways: Ways, rounds: int) -> dict[str, float]:
    found = {name: float("inf") for name in ways}
    for _ in range(rounds):
        for name, around in ways.items():
            found[name] = min(found[name], seconds(step, around))
    return found


def ops_of(step: Step) -> int:
    recording = Recording(10**9, None)
    recording.start()
    step()
    recording.stop()
    return recording.recorder.threads[0].op


def bytes_an_op(step: Step) -> float:
    """Return what a recording holds after forty more steps."""
    recording = Recording(10**9, None)
    recording.start()
    state = recording.recorder.threads[0]
    try:
        for _ in range(5):
            step()
        gc.collect()
        first = state.op
        tracemalloc.start()
        for _ in range(40):
            step()
        gc.collect()
        state.pack()
        return tracemalloc.get_traced_memory()[0] / (state.op - first)
    finally:
        tracemalloc.stop()
        recording.stop()


def main() -> int:
    torch.set_num_threads(1)
    plain = contextlib.nullcontext
    small, large = encoder(64, 4), encoder(512, 32)
    for _ in range(3):
        small()
    ops = ops_of(small)
    ways: Ways = {"plain PyTorch": plain, "an empty dispatch mode": Empty, "devtrace": Recorded}
    times = fastest(small, ways, ROUNDS)
    others: Ways = {"torch.profiler (stack, shapes, modules)": profiler, "DebugMode (modules, stacks)": debug_mode}
    times |= fastest(small, others, 2)
    base, empty = times["plain PyTorch"], times["an empty dispatch mode"]
    print(f"| training step, {ops:,} ops | ms | × plain | × empty mode |\n|---|---:|---:|---:|")
    for name, value in times.items():
        print(f"| {name} | {value * 1e3:.1f} | {value / base:.2f} | {value / empty:.2f} |")
    work = fastest(large, {"plain": plain, "devtrace": Recorded}, 8)
    memory = bytes_an_op(small)
    ratio, real = times["devtrace"] / empty, work["devtrace"] / work["plain"]
    print("\n| recording | measured | budget |\n|---|---:|---:|")
    print(f"| small step, × empty mode | {ratio:.2f} | {SMALL_BUDGET} |")
    print(f"| step with real work (d=512, batch 32), × plain | {real:.2f} | {LARGE_BUDGET} |")
    print(f"| bytes an op | {memory:.0f} | {MEMORY_BUDGET:.0f} |")
    return int(ratio > SMALL_BUDGET or real > LARGE_BUDGET or memory > MEMORY_BUDGET)


if __name__ == "__main__":
    sys.exit(main())
