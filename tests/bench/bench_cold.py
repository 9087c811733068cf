"""An error in a large program, to the words of its report: at most 1 s where it was recorded, 500 ms where it was not.

    python tests/bench/bench_cold.py [recorded | untraced]      one run, with the slowest functions

A source of 6,000 lines, 5,000 modules, 60,000 live objects of which nine know each other, a trace of 100,000 ops: what
is cheap in a script must not be the square of anything. CPU time of the one thread, the fastest of several processes;
with what is imported for it, and with the end of the recording, which makes rows of what was noted.
"""

from __future__ import annotations

import cProfile
import importlib.util
import pstats
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import torch

import devtrace
from devtrace.recording.context import hooks

LINES, BLOCKS, OBJECTS, OPS = 6_000, 1_250, 60_000, 100_000
BUDGETS: Final = {"recorded": 1000.0, "untraced": 500.0}  # ms
RUNS = 3
FILLER = '''

def helper_{number}(values, scale=2.0, device="cpu"):
    """One of many."""
    total = torch.zeros(len(values))
    for position, value in enumerate(values):
        moved = torch.as_tensor(value).to(device)
        total[position] = (moved * scale).sum()
    if total.sum() > scale:
        total = total / {number}
    return total
'''
PROGRAM = '''

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down, self.norm = nn.Linear(2, 2), nn.Linear(2, 2), nn.LayerNorm(2)


class Part:
    """One of nine that know each other."""

    def __init__(self, number):
        self.number = number
        self.others = []
        self.options = {"rate": 0.1}


class Trainer:
    def __init__(self, device):
        self.device = device
        self.model = nn.Sequential(*[Block() for _ in range(BLOCKS)]).to(device)
        self.parts = [Part(number) for number in range(9)]
        for one in self.parts:
            one.trainer, one.model = self, self.model
            one.others = [other for other in self.parts if other is not one]
            for other in one.others:
                setattr(one, f"part_{other.number}", other)
        self.parts[4].table = torch.linspace(0, 1, 2)
        self.rows = [{"id": number, "name": str(number)} for number in range(OBJECTS)]

    def warm_up(self, x, steps):
        for _ in range(steps):
            x = x * 0.5
            x = x + 1.0
            x = x - 0.25
            x = x.relu()
        return x

    def step(self, x):
        weight = self.model[3].up.weight
        scaled = self.parts[4].table
        return (x @ weight) * scaled


def run(device, steps):
    trainer = Trainer(device)
    x = trainer.warm_up(torch.ones(4, 2, device=device), steps)
    return trainer.step(x)
'''


def source() -> str:
    """Return the program: its own lines in the midst of helpers."""
    own = PROGRAM.replace("BLOCKS", str(BLOCKS)).replace("OBJECTS", str(OBJECTS))
    count = (LINES - own.count("\n")) // FILLER.count("\n")
    helpers = [FILLER.format(number=number) for number in range(1, count + 1)]
    helpers.insert(count // 2, own)
    return "".join(["import torch\nfrom torch import nn\n", *helpers])


def program(folder: Path) -> Any:
    path = folder / "train.py"
    path.write_text(source(), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("train", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["train"] = module
    spec.loader.exec_module(module)
    return module


def recorded(module: Any) -> str:
    """Return the report of a recorded run."""
    recording = devtrace.record(simulate="cuda:1")
    with suppress(RuntimeError), recording:
        try:
            module.run("cuda:0", OPS // 4)
        finally:
            BEGAN.append(time.thread_time())
    report: str = recording.report.text
    assert len(recording.trace.ops) + recording.trace.truncated >= OPS
    return report


def untraced(module: Any) -> str:
    """Return the report of an error that nobody recorded."""
    hooks.install()
    with devtrace.simulate("cuda:1"):
        try:
            module.run("cuda:0", 1)
        except RuntimeError as error:
            BEGAN.append(time.thread_time())
            report: str = devtrace.explain(error).text
            return report
    raise AssertionError("the program must fail")


BEGAN: Final[list[float]] = []


def once(way: str) -> tuple[float, str]:
    """Return the milliseconds from the error to the report, and the report."""
    torch.set_num_threads(1)
    with TemporaryDirectory() as folder:
        report = {"recorded": recorded, "untraced": untraced}[way](program(Path(folder)))
    return (time.thread_time() - BEGAN[0]) * 1e3, report


def profiled(way: str) -> None:
    """Print what a run takes, and where."""
    profile = cProfile.Profile()
    took, report = profile.runcall(once, way)
    print(f"{report}\n\n{took:.0f} ms under the profiler")
    pstats.Stats(profile).sort_stats("cumulative").print_stats(
        r"devtrace/(diagnosis|explaining|source|api|recording/finish)", 40
    )


def main() -> int:
    missed = 0
    print(f"| {LINES:,} lines, {4 * BLOCKS + 1:,} modules, {OBJECTS:,} objects | ms | budget |\n|---|---:|---:|")
    for way, budget in BUDGETS.items():
        own = [sys.executable, __file__, way, "once"]
        runs = [subprocess.run(own, check=True, capture_output=True, text=True).stdout for _ in range(RUNS)]
        fastest = min(map(float, runs))
        print(
            f"| {way}, to the report{f' of {OPS:,} ops' if way == 'recorded' else ''} | {fastest:.0f} | {budget:.0f} |"
        )
        missed += fastest > budget
    return int(missed > 0)


if __name__ == "__main__":
    if sys.argv[2:] == ["once"]:
        print(once(sys.argv[1])[0])
    elif sys.argv[1:]:
        profiled(sys.argv[1])
    else:
        sys.exit(main())
