"""`make bench`: every `bench_*.py` beside this file prints its table, in the order of their names.

Each is a script: its figures are ratios of interleaved runs, the best of several, since a machine's speed drifts. One
fails where it misses its budget, and where a ratio is a fifth worse than in `ratios.json`, where a quiet machine's are
kept: "the first cells of the row -> the column".
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
WORSE: Final = 1.2
Recorded = Mapping[str, Mapping[str, float]]


def main(chosen: list[str]) -> int:
    """Run the benches whose names hold one of the words, all without any; 1 where one failed or became worse."""
    scripts = sorted(HERE.glob("bench_*.py"))
    picked = [path for path in scripts if not chosen or any(word in path.stem for word in chosen)]
    recorded: Recorded = json.loads((HERE / "ratios.json").read_text(encoding="utf-8"))
    return max([bench(path, recorded.get(path.stem, {})) for path in picked], default=1)


def bench(script: Path, recorded: Mapping[str, float]) -> int:
    """Run one and pass on what it prints; then say which of its ratios became worse."""
    lines = []
    with subprocess.Popen([sys.executable, "-u", str(script)], stdout=subprocess.PIPE, text=True) as running:
        for line in running.stdout or ():
            print(line, end="", flush=True)
            lines.append(line)
    complaints = worse(lines, recorded)
    print(*complaints, sep="\n", end="\n" * bool(complaints), flush=True)
    return max(running.returncode, int(bool(complaints)))


def worse(lines: list[str], recorded: Mapping[str, float]) -> list[str]:
    """Return a sentence for each recorded ratio that a table has not, or that is a fifth worse in it."""
    found = dict(ratios(lines))
    complaints = []
    for name, before in recorded.items():
        if name not in found:
            complaints.append(f"no table has {name}")
        elif found[name] > WORSE * before:
            complaints.append(f"{name} is {found[name]:.2f}, recorded are {before:.2f}: over {WORSE} times as much")
    return complaints


def ratios(lines: list[str]) -> Iterator[tuple[str, float]]:
    """Yield the numbers of all tables, each under its column's name and as many cells before it as tell rows apart."""
    heads: list[str] = []
    for line in lines:
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []
        if len(cells) != len(heads):
            heads = cells
            continue
        for at, (head, cell) in enumerate(zip(heads, cells, strict=True)):
            if at and cell.replace(".", "", 1).isdigit():
                yield from ((f"{' | '.join(cells[:count])} -> {head}", float(cell)) for count in range(1, at + 1))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
