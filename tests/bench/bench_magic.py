"""What a loaded devtrace adds to a cell that does not touch torch: below 1 ms, under `%devtrace on` too."""

from __future__ import annotations

import sys
import time

from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from traitlets.config import Config

BUDGET = 1.0  # ms under `%devtrace on`, torch imported
RUNS = 300


def milliseconds(shell: InteractiveShell) -> float:
    start = time.perf_counter()
    shell.run_cell("n = 1", store_history=True)
    return (time.perf_counter() - start) * 1000


def main() -> int:
    config = Config({"HistoryManager": {"enabled": False}})
    shell = InteractiveShell.instance(config=config)
    states = {
        "bare IPython": ["%unload_ext devtrace"],
        "loaded": ["%load_ext devtrace"],
        "loaded, `%devtrace on`": ["%load_ext devtrace", "%devtrace on"],
    }
    rows = []
    for torch in ("", "import torch"):
        best = dict.fromkeys(states, float("inf"))
        with capture_output():
            shell.run_cell("%load_ext devtrace\n" + torch)
            for _ in range(RUNS // 10):
                for state, cells in states.items():
                    for cell in cells:
                        shell.run_cell(cell)
                    best[state] = min(best[state], *(milliseconds(shell) for _ in range(10)))
        bare = best.pop("bare IPython")
        rows += [(torch or "no torch", state, ms - bare) for state, ms in best.items()]
    print("| | a cell `n = 1` takes longer by | budget |\n|---|---:|---:|")
    for torch, state, added in rows:
        print(f"| {torch}, {state} | {added:.3f} ms | {BUDGET:.0f} ms |")
    return int(any(added > BUDGET for *_, added in rows))


if __name__ == "__main__":
    sys.exit(main())
