"""What `import devtrace` adds to a bare Python: at most 50 ms."""

from __future__ import annotations

import subprocess
import sys
import time

BUDGET = 50.0  # ms
RUNS = 15


def milliseconds(code: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return (time.perf_counter() - start) * 1000


def main() -> int:
    bare, ours = [], []
    for _ in range(RUNS):
        bare.append(milliseconds("pass"))
        ours.append(milliseconds("import devtrace"))
    added = min(ours) - min(bare)
    print("| import | ms | budget |\n|---|---:|---:|")
    print(f"| bare Python | {min(bare):.1f} | |\n| `import devtrace` adds | {added:.1f} | {BUDGET:.0f} |")
    return int(added > BUDGET)


if __name__ == "__main__":
    sys.exit(main())
