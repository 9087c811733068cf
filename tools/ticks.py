"""Looks for a green tick that is not true: programs of the corpus with one tensor or layer left on the CPU.

python tools/ticks.py [--seed N] [--count N] [--jobs N]
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "harness"))

from corpus_programs import PROGRAMS
from mutants import Ending, Mutant, drawn, ending, with_its_fix
from warm import Warm


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    with Warm() as warm:
        healthy = {program: ending(warm, program, with_its_fix(program)) for program in PROGRAMS}
        chosen = drawn(warm, PROGRAMS, options.seed, options.count)
    counts: Counter[str] = Counter()
    counts["healthy programs, of these with a tick"] = sum(each.ticked for each in healthy.values())
    parts = [chosen[start :: options.jobs] for start in range(options.jobs)]
    with ThreadPoolExecutor(options.jobs) as pool:
        for part in pool.map(run_all, parts):
            for mutant, found in part:
                counts[kind(found, healthy[mutant.program])] += 1
                if found.ticked and found.does_more_than(healthy[mutant.program]):
                    print(f"false tick: {mutant} ({found} {healthy[mutant.program]})", flush=True)
    print("\n".join(f"{count:4} {name}" for name, count in counts.most_common()))
    return int(any(name.startswith("false") for name in counts))


def kind(found: Ending, healthy: Ending) -> str:
    if found.raised:
        return "false: failed, with a tick" if found.ticked else "failed"
    if not found.does_more_than(healthy):
        return "did nothing more on the CPU"
    return "false: ran, with a tick" if found.ticked else "ran without a tick"


def run_all(part: list[Mutant]) -> list[tuple[Mutant, Ending]]:
    with Warm() as warm:
        return [(mutant, ending(warm, mutant.program, mutant.text)) for mutant in part]


if __name__ == "__main__":
    sys.exit(main())
