"""How many programs with a device bug `devtrace fix` repairs by itself, and what became of the others.

    python tools/fixed.py [--jobs N] [--only WORD] [--full] FOLDER ...

The folders are those of tools/repaired.py, which applies each round's edits without the rules of `devtrace fix`.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from repaired import programs

from devtrace.diagnosis.findings import Edit
from devtrace.fixing.rounds import Rounds
from fix_rounds import fixed  # in tests/, which `repaired` puts on the path
from repair import Program
from warm import Warm


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--full", action="store_true", help="show the rounds of the fixed programs, too")
    options = parser.parse_args()
    endings: Counter[str] = Counter()
    for folder in options.folders:
        chosen = [each for each in programs(folder.absolute()) if options.only in each[0]]
        with ThreadPoolExecutor(options.jobs) as pool:
            for part in pool.map(_fix_all, [chosen[start :: options.jobs] for start in range(options.jobs)]):
                for name, rounds in part:
                    endings[ending(rounds)] += 1
                    print(f"{name:28} {ending(rounds)} in {len(rounds.runs)} runs", flush=True)
                    if options.full or not rounds.is_proven:
                        print("\n".join(_story(rounds)), flush=True)
    total = max(endings.total(), 1)
    share = endings["fixed"] / total
    print(f"{total} programs: " + ", ".join(f"{count} {name}" for name, count in endings.most_common()))
    return 0 if share >= 0.9 else 1


def ending(rounds: Rounds) -> str:
    if rounds.left is None:
        return "fixed" if rounds.last.ending == "ended" else "other error"
    return "new error" if "raises another error" in rounds.why_left else "left"


def _story(rounds: Rounds) -> list[str]:
    lines = [_shown(edit) for change in rounds.changes for edit in change.finding.edits]
    if rounds.left is not None:
        left = rounds.left
        lines += [f"    left at {left.site}: {left.message}", f"    {rounds.why_left}; {left.help}"]
        lines += [f"    tried {_shown(edit).strip()}" for edit in left.edits]
    return [*lines, f"    {rounds.last.ending} {rounds.last.raised}"]


def _shown(edit: Edit) -> str:
    return f"    {Path(edit.file).name}:{edit.line} {edit.before.strip()!r} -> {edit.after.strip()!r}"


def _fix_all(part: list[tuple[str, Program]]) -> list[tuple[str, Rounds]]:
    with Warm() as warm:
        return [(name, fixed(warm, program)[0]) for name, program in part]


if __name__ == "__main__":
    sys.exit(main())
