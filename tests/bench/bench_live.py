"""What the sidebar costs the kernel: a cell without torch, the live feed of a traced one, the listing of a namespace.

Fastest of interleaved runs, and CPU time of the thread that does the work, which a busy machine disturbs least. The
feed has a thread of its own; its share is what that thread used, beside what the cell's own thread did. The panel under
test is the kernel's, talked to by a front end that turns each message into JSON, as a comm does.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from torch import nn
from traitlets.config import Config

from devtrace.api.options import Options
from devtrace.notebook import cells, magic
from devtrace.notebook.inventory.inventory import Steps, listing
from devtrace.notebook.panel.idle import SETTLE, Lister
from devtrace.notebook.panel.messages import SPEC
from devtrace.notebook.panel.panel import Panel

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.bench_magic import milliseconds
from bench.bench_record import encoder

CELL_BUDGET, FEED_BUDGET, MESSAGES_BUDGET = 1.0, 0.02, 10.0  # ms, share, messages a second
LISTING_BUDGET, WAIT_BUDGET = 100.0, 10.0  # ms
RUNS, LISTINGS, TRACED_SECONDS = 300, 15, 4.0
TENSORS, LAYERS = 1_000, 2_500
Row = tuple[str, float, str, float]


class FrontEnd:
    """A visible sidebar: what it is sent is counted and made into JSON."""

    def __init__(self, panel: Panel) -> None:
        self.at: list[float] = []
        self.send = panel.connect(self._take)
        self.send({"kind": "hello", "request": 1, "protocol": SPEC["protocol"], "visible": True})

    def _take(self, message: dict[str, Any]) -> None:
        json.dumps(message).encode()
        self.at.append(time.monotonic())


def cell_rows(shell: InteractiveShell) -> list[Row]:
    """Return what a cell `n = 1` takes longer: every cell traced, a visible panel connected."""
    best = {"bare": float("inf"), "panel": float("inf")}
    for _ in range(RUNS // 10):
        shell.run_cell("%unload_ext devtrace")
        best["bare"] = min(best["bare"], *(milliseconds(shell) for _ in range(10)))
        shell.run_cell("%load_ext devtrace\n%devtrace on")
        best["panel"] = min(best["panel"], *with_panel(shell, lambda: [milliseconds(shell) for _ in range(10)]))
    return [("a cell without torch takes longer by, ms", best["panel"] - best["bare"], ".3f", CELL_BUDGET)]


def with_panel(shell: InteractiveShell, act: Callable[[], list[float]]) -> list[float]:
    """Act while a panel is connected to the shell as `live` connects one."""
    panel = Panel(magic.extensions[shell].tracing, None)
    FrontEnd(panel)
    before, after = (lambda info: panel.cell_begins()), (lambda result: panel.cell_ended())
    shell.events.register("pre_run_cell", before)
    shell.events.register("post_run_cell", after)
    try:
        return act()
    finally:
        shell.events.unregister("pre_run_cell", before)
        shell.events.unregister("post_run_cell", after)
        panel.close()


def feed_rows() -> list[Row]:
    """A cell of small ops, the most to count a second, while a panel looks."""
    tracing = cells.Tracing({})
    panel = Panel(tracing, None)
    front = FrontEnd(panel)
    work = encoder(32, 2)
    tracing.begin(cells.Cell("<cell>", "", 1, "a"), Options())
    feed = next(thread for thread in threading.enumerate() if thread.name == "devtrace-feed")
    begun, own, fed = time.monotonic(), time.thread_time(), cpu(feed)
    while time.monotonic() < begun + TRACED_SECONDS:
        work()
    own, fed, ended = time.thread_time() - own, cpu(feed) - fed, time.monotonic()
    tracing.finish()
    panel.close()
    tracing.close()
    sent = [at for at in front.at if begun < at <= ended]
    return [
        ("the feed's share of a traced cell", fed / own, ".2%", FEED_BUDGET),
        ("messages a second", len(sent) / (ended - begun), ".1f", MESSAGES_BUDGET),
    ]


def cpu(thread: threading.Thread) -> float:
    """CPU seconds that a thread has used."""
    assert thread.ident is not None
    return time.clock_gettime(time.pthread_getcpuclockid(thread.ident))


class Watched(Lister):
    """Notes what each slice of a listing takes: so long does a message that comes meanwhile wait."""

    def __init__(self, names: dict[str, Any], loop: asyncio.AbstractEventLoop) -> None:
        self.slices: list[float] = []
        self.begun = self.ended = 0.0
        super().__init__(loop, lambda: self._begin(names), lambda: True, self._end)

    def _begin(self, names: dict[str, Any]) -> Steps:
        self.begun = time.perf_counter()
        return listing(names)

    def _end(self, inventory: dict[str, Any]) -> None:
        self.ended = time.perf_counter()

    def _step(self) -> None:
        start = time.thread_time()
        super()._step()
        self.slices.append((time.thread_time() - start) * 1000)


def listing_rows() -> list[Row]:
    """1,000 tensors and a model of 5,000 parameters, on one device and with a layer left behind."""
    rows: list[Row] = []
    for label, last in (("", "cpu"), (", of two devices", "meta")):
        names: dict[str, Any] = {f"x{i}": torch.empty(4, 4) for i in range(TENSORS)}
        names["model"] = nn.Sequential(*(nn.Linear(2, 2, device="cpu") for _ in range(LAYERS)))
        names["model"][-1] = nn.Linear(2, 2, device=last)
        totals, waits, walls = zip(*(listed(names) for _ in range(LISTINGS)), strict=True)
        rows += [
            (f"a listing{label}, ms", statistics.median(totals), ".1f", LISTING_BUDGET),
            (f"a listing{label}, with its pauses, ms (on a quiet machine)", min(walls), ".1f", float("inf")),
            (f"a cell meanwhile waits, ms{label}", statistics.median(waits), ".1f", WAIT_BUDGET),
        ]
    return rows


def listed(names: dict[str, Any]) -> tuple[float, float, float]:
    """CPU time of one listing in idle time, of its longest slice, and the time from its first to its last, in ms."""
    loop = asyncio.new_event_loop()
    lister = Watched(names, loop)

    async def wait() -> None:
        lister.later()
        await asyncio.sleep(SETTLE)
        while not lister.ended:
            await asyncio.sleep(0.002)

    loop.run_until_complete(wait())
    loop.close()
    return sum(lister.slices), max(lister.slices), (lister.ended - lister.begun) * 1000


def written(budget: float, form: str) -> str:
    return "" if budget == float("inf") else f"{budget:{'.0%' if '%' in form else '.0f'}}"


def main() -> int:
    shell = InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}))
    with capture_output():
        shell.run_cell("%load_ext devtrace\nimport torch")
        rows = cell_rows(shell) + feed_rows() + listing_rows()
    print("| sidebar | measured | budget |\n|---|---:|---:|")
    for what, measured, form, budget in rows:
        print(f"| {what} | {measured:{form}} | {written(budget, form)} |")
    return int(any(measured > budget for _, measured, _, budget in rows))


if __name__ == "__main__":
    sys.exit(main())
