"""How many programs with a device bug `devtrace fix` repairs by itself, and what became of the others.

    python tools/fixed.py [--jobs N] [--only WORD] [--full] [--costs] FOLDER ...

A folder with `expectations.json` holds releases (their packages in $RELEASES; as own code with OWN=1), one with
`*.expected.json` a corpus of files, else each `bug.py` or `*.py` is a program: its `run` or `main`, or all of it.
With --costs, programs that run come too, and each edit of a cost is applied and held against the run without it.
What breaks a program or changes a value is harm, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from devtrace.fixing.costs import Costs
from devtrace.fixing.rounds import Rounds
from devtrace.words.catalogue import sentence

HARNESS = Path(__file__).resolve().parents[1] / "tests" / "harness"
sys.path.insert(0, str(HARNESS))

from fix_rounds import cheaper, fixed, story  # noqa: E402
from programs import Program  # noqa: E402
from warm import Warm  # noqa: E402

WHY = {"fix.cost-ends": "breaks", "fix.cost-values": "changes a value", "fix.cost-not-less": "no less"}
HARM = {"breaks", "changes a value"}


def programs(folder: Path, *, silent: bool) -> Iterator[tuple[str, Program]]:
    """Yield the programs of a folder that raise, or all, with a name for each."""
    if (folder / "expectations.json").exists():
        yield from _releases(folder, silent=silent)
    elif answers := sorted(folder.rglob("*.expected.json")):
        for answer in answers:
            expected = json.loads(answer.read_text())
            if silent or not expected["silent"]:
                yield answer.name.split(".")[0], Program(answer.with_name(expected["file"]), _args(expected))
    elif bugs := sorted(folder.rglob("bug.py")):
        for bug in bugs:
            expected = json.loads((bug.parent / "expected.json").read_text())
            if silent or bug.parent.parent.name != "costs":
                yield bug.parent.name, Program(bug, tuple(expected.get("arguments", ["cuda:0"])))
    else:
        for path in sorted(folder.glob("*.py")):
            is_called = re.search(r"^def (run|main)\(\w", path.read_text(), re.MULTILINE)
            yield path.stem, Program(path, ("cuda:0",) if is_called else ())


def _args(expected: dict) -> tuple[str, ...]:  # type: ignore[type-arg]
    return tuple(expected["call"]["args"])


def _releases(folder: Path, *, silent: bool) -> Iterator[tuple[str, Program]]:
    packages = Path(os.environ.get("RELEASES", folder / "pkgs"))
    for name, wanted in json.loads((folder / "expectations.json").read_text()).items():
        if wanted.get("silent") and not silent:
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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--full", action="store_true", help="show the rounds of the fixed programs, too")
    parser.add_argument("--costs", action="store_true", help="also the edits of costs, and programs that run")
    options = parser.parse_args()
    endings, of_costs = Counter[str](), Counter[str]()
    for folder in options.folders:
        chosen = [each for each in programs(folder.absolute(), silent=options.costs) if options.only in each[0]]
        with ThreadPoolExecutor(options.jobs) as pool:
            parts = [chosen[start :: options.jobs] for start in range(options.jobs)]
            for part in pool.map(partial(_fix_all, costs=options.costs), parts):
                for name, rounds, costs in part:
                    for edit, of in costs:
                        of_costs[of] += 1
                        if of in HARM or options.full:
                            print(f"{name:28} {of}: {edit}", flush=True)
                    endings[ending(rounds)] += 1
                    print(f"{name:28} {ending(rounds)} in {len(rounds.runs)} runs", flush=True)
                    if options.full or not rounds.is_proven:
                        print(story(rounds), flush=True)
    total = max(endings.total(), 1)
    share = sum(count for name, count in endings.items() if name.startswith("fixed")) / total
    print(f"{total} programs: " + ", ".join(f"{count} {name}" for name, count in endings.most_common()))
    if options.costs:
        print(f"{of_costs.total()} edits of costs: " + ", ".join(f"{many} {of}" for of, many in of_costs.most_common()))
        return int(not HARM.isdisjoint(of_costs) or bool(endings["new error"]))
    return 0 if share >= 0.9 else 1


def ending(rounds: Rounds) -> str:
    if rounds.left is None and rounds.last.ending == "ended":
        differs = rounds.compared is not None and not rounds.compared.is_proof
        return f"fixed, not proven: {rounds.compared}" if differs else "fixed"
    if rounds.left is None:
        return "other error"
    if not rounds.left.edits:
        return "no edit"
    return "new error" if rounds.last.error is None else "no help"


def _fix_all(part: list[tuple[str, Program]], *, costs: bool) -> list[tuple[str, Rounds, list[tuple[str, str]]]]:
    with Warm() as warm:
        if not costs:
            return [(name, fixed(warm, program)[0], []) for name, program in part]
        found = [(name, cheaper(warm, program)) for name, program in part]
        return [(name, each.rounds, list(_of_costs(each))) for name, each in found]


def _of_costs(costs: Costs) -> Iterator[tuple[str, str]]:
    """Yield each edit of a cost that was tried, and what it did."""
    for change in costs.rounds.changes:
        if change.finding.severity != "error":
            yield str(change.finding.site), "less, the same values"
    for finding, why in costs.rejected:
        kind = next((kind for key, kind in WHY.items() if why.startswith(sentence(key, raised="", names="")[:20])), why)
        yield f"{finding.site}: {why} ({finding.help})", kind


if __name__ == "__main__":
    sys.exit(main())
