"""How many programs with a device bug the offered edits repair.

    python tools/repaired.py [--jobs N] [--only WORD] [--full] FOLDER ...

A folder with `expectations.json` holds releases (their packages in $RELEASES; as own code with OWN=1), one with
`*.expected.json` a corpus of files, else each `bug.py` or `*.py` with a `run` is a program.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path.insert(0, str(TESTS))

from repair import Program, Repair, repair  # noqa: E402
from warm import Warm  # noqa: E402


def programs(folder: Path) -> Iterator[tuple[str, Program]]:
    """Yield the programs of a folder that raise, with a name for each."""
    if (folder / "expectations.json").exists():
        yield from _releases(folder)
    elif answers := sorted(folder.rglob("*.expected.json")):
        for answer in answers:
            expected = json.loads(answer.read_text())
            if not expected["silent"]:
                yield answer.name.split(".")[0], Program(answer.with_name(expected["file"]), _args(expected))
    elif bugs := sorted(folder.rglob("bug.py")):
        for bug in bugs:
            expected = json.loads((bug.parent / "expected.json").read_text())
            if bug.parent.parent.name != "costs":
                yield bug.parent.name, Program(bug, tuple(expected.get("arguments", ["cuda:0"])))
    else:
        yield from ((path.stem, Program(path, ("cuda:0",))) for path in sorted(folder.glob("*.py")))


def _args(expected: dict) -> tuple[str, ...]:  # type: ignore[type-arg]
    return tuple(expected["call"]["args"])


def _releases(folder: Path) -> Iterator[tuple[str, Program]]:
    packages = Path(os.environ.get("RELEASES", folder / "pkgs"))
    for name, wanted in json.loads((folder / "expectations.json").read_text()).items():
        if wanted.get("silent"):
            continue
        paths = [packages / each / "site-packages" for each in wanted.get("packages", [])]
        if os.environ.get("OWN"):
            paths = [_as_own(packages, each) for each in wanted.get("packages", [])]
        yield name, Program(
            folder / "cases" / f"{name}.py", (), wanted.get("simulate", "cuda:1"), tuple(paths),
            tuple(wanted.get("before", ())),
        )  # fmt: skip


def _as_own(packages: Path, name: str) -> Path:
    """Return another path of a package, in which nothing says that it is installed."""
    link = packages.parent / "own" / name / "src"
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.is_symlink():
        link.symlink_to(packages / name / "site-packages")
    return link


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--full", action="store_true")
    options = parser.parse_args()
    endings: Counter[str] = Counter()
    for folder in options.folders:
        chosen = [each for each in programs(folder.absolute()) if options.only in each[0]]
        with ThreadPoolExecutor(options.jobs) as pool:
            parts = [chosen[start :: options.jobs] for start in range(options.jobs)]
            for repaired in pool.map(_repair_all, parts):
                for name, result in repaired:
                    endings[result.ending] += 1
                    shown = str(result) if options.full or result.ending != "repaired" else "repaired"
                    print(f"{name:28} {shown}", flush=True)
    total = endings.total()
    print(f"{total} programs: " + ", ".join(f"{count} {ending}" for ending, count in endings.most_common()))


def _repair_all(part: list[tuple[str, Program]]) -> list[tuple[str, Repair]]:
    with Warm() as warm:
        return [(name, repair(warm, program)) for name, program in part]


if __name__ == "__main__":
    main()
