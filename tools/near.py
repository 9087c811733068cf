"""Run the tests that a change can reach, the nearest first.

    make near                            what differs from HEAD, after the gates of `make check`
    make near FILES="src/a.py b.tsv"     these files: what is changed in them, or all of them
    tools/near.py --since main --list    only name the tests of a branch

`tests/data/near.json` has the test files that run each function (`make near-record`). It is refreshed by hand: a file
that has moved is known by its name, a new one by who imports or mentions it and by the folder of the same name.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from near_record import MAP, ROOT, UNIT, named, numbers

# Weights: a test file that is changed itself; one that mentions what is changed; one in the folder of the same name.
# A function has as much for all who run it, so that one that few run says most of each.
CHANGED, MENTIONS, BESIDE, RUNS = 1_000_000, 1_000, 100, 1_000
UNKNOWN = 10  # seconds of a file that was not recorded
APART = {
    "`make notebooks`": ("src/", "notebooks/", "tools/make_notebooks.py", "tests/project/test_notebooks.py"),
    "`make e2e`": ("src/", "labextension/", "tests/e2e/"),
    "`make breadth`": ("src/", "tests/"),
}
"""What is never run here, by the target that runs it, and the folders of which a change can reach it."""


class Near:
    """The tests of a checkout, and which of them run which function, as it was recorded."""

    def __init__(self, root: Path) -> None:
        self.root = root
        recorded = json.loads((root / MAP).read_text(encoding="utf-8"))
        self.functions: dict[str, dict[str, str]] = recorded["functions"]
        folders = {path.parent for path in (root / "tests").rglob("test_*.py")} - {root / "tests" / "e2e"}
        files = sorted(path for folder in (*folders, root / "tests" / "harness") for path in folder.glob("*.py"))
        self.texts = {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in files}
        here = {Path(path).name: path for path in self.texts if is_test(path)}
        self.tests = [path if path in self.texts else here.get(Path(path).name, "") for path in recorded["seconds"]]
        self.seconds = dict(zip(self.tests, recorded["seconds"].values(), strict=True))

    def reached(self, path: str, lines: set[int] | None) -> Counter[str]:
        """Weigh the test files that a change of these lines of a file, or of all, can reach."""
        if is_test(path):
            return Counter({path: CHANGED} if path in self.texts else {})
        text = (self.root / path).read_text(encoding="utf-8") if lines and (self.root / path).is_file() else ""
        weights: Counter[str] = Counter()
        if path.startswith("src/") and path.endswith(".py"):
            weights = self._of_functions(path, named(text, lines) if lines and text else {""})
        elif not path.endswith(".py"):
            changed = [line for at, line in enumerate(text.splitlines(), 1) if lines and at in lines]
            weights = self._of_keys({word[0] for line in changed if (word := re.search(r"[\w.*-]+", line))})
        return weights or self._mentions(path, {path}) + self._beside(path)

    def _of_functions(self, path: str, changed: set[str]) -> Counter[str]:
        """Weigh who runs the functions: all of the file where "", a line outside of them, is changed."""
        moved = [known for known in self.functions if Path(known).name == Path(path).name]
        same = [path] if path in self.functions else moved
        runs = [(function, bits) for known in same for function, bits in self.functions[known].items()]
        chosen = [bits for function, bits in runs if function in changed and "" not in changed]
        weights: Counter[str] = Counter()
        for bits in chosen or [bits for _, bits in runs]:
            tests = [self.tests[number] for number in numbers(bits)]
            weights.update({test: RUNS // len(tests) for test in tests if test})
        return weights

    def _of_keys(self, keys: set[str]) -> Counter[str]:
        """Weigh who runs the functions that name a line of data, as a sentence by its key."""
        weights: Counter[str] = Counter()
        for path in (self.root / "src").rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            if lines := {at for at, line in enumerate(text.splitlines(), 1) for key in keys if f'"{key}"' in line}:
                weights += self._of_functions(path.relative_to(self.root).as_posix(), named(text, lines))
        return weights

    def _mentions(self, path: str, seen: set[str]) -> Counter[str]:
        """Weigh who imports a module or names a file, also by a module of the harness."""
        pattern = mention(path)
        found = {other for other, text in self.texts.items() if other not in seen and pattern.search(text)}
        seen |= found
        weights = Counter({other: MENTIONS for other in found if is_test(other)})
        for other in found - weights.keys():
            weights |= self._mentions(other, seen)
        return weights

    def _beside(self, path: str) -> Counter[str]:
        """Weigh the tests in the folder of the same name, the innermost that there is."""
        for folder in Path(path.removeprefix("src/devtrace/")).parents[:-1]:
            if inside := [test for test in self.texts if is_test(test) and test.startswith(f"tests/{folder}/")]:
                return Counter(dict.fromkeys(inside, BESIDE))
        return Counter()


def is_test(path: str) -> bool:
    return path.startswith("tests/") and Path(path).name.startswith("test_")


def mention(path: str) -> re.Pattern[str]:
    """Return what finds an import of a module, the name of another file, or the folder of a program or page."""
    parts, stem = Path(path).parts, Path(path).stem
    if path.endswith(".py") and parts[0] == "src":
        module = ".".join(part for part in (*parts[1:-1], stem) if part != "__init__")
        package, _, last = module.rpartition(".")
        names = rf"(?:\([^)]*|[^(\n]*)\b{last}\b"
        return re.compile(rf"\b{re.escape(module)}\b|from {re.escape(package or module)} import {names}")
    imports = rf"^\s*(?:from|import) (?:[\w.]*\.)?{stem}\b|^\s*from [\w.]+ import .*\b{stem}\b"
    top = parts[1] if parts[0] == "tests" else parts[0]
    folder = [rf'"{top}"'] if len(parts) > 1 and top not in ("data", "harness", "tools") else []
    of_file = imports if path.endswith(".py") and not folder else re.escape(parts[-1] if Path(path).suffix else path)
    return re.compile("|".join([of_file, *folder]), re.M)


def changes(since: str, files: Iterable[str]) -> Iterator[tuple[str, set[int] | None]]:
    """Yield each file that differs, or was named, with the lines that are new; None stands for all of it."""
    [since] = git("merge-base", since, "HEAD")
    new = git("ls-files", "--others", "--exclude-standard", "--", *files)
    for path in dict.fromkeys([*files, *git("diff", "--name-only", since, "--", *files), *new]):
        hunks = (re.match(r"@@ .*\+(\d+)(?:,(\d+))? @@", line) for line in git("diff", "-U0", since, "--", path))
        ranges = [(int(hunk[1]), int(hunk[2] or 1)) for hunk in hunks if hunk]
        yield path, {line for at, count in ranges for line in range(at, at + max(count, 1))} or None


def git(*arguments: str) -> list[str]:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


def nearest(near: Near, weights: Counter[str], limit: float) -> tuple[list[str], list[str]]:
    """Return the test files in their order, most weight for a second first, and those for which there is no time."""
    takes = {test: near.seconds.get(test, UNKNOWN) for test in weights}
    order = sorted(weights, key=lambda test: (-weights[test] / (takes[test] + 1), test))
    run: list[str] = []
    for test in order:
        if not run or takes[test] <= limit:
            limit -= takes[test]
            run.append(test)
    return run, [test for test in order if test not in run]


def not_run(left: Iterable[str], changed: Iterable[str], limit: float) -> Iterator[str]:
    """Yield in a line each what a change can reach and nobody asked: green says nothing of these."""
    yield from (f"not run: {test}, beyond {limit:.0f} s" for test in left)
    paths = tuple(changed)
    yield from (f"not run: {target}" for target, of in APART.items() if any(path.startswith(of) for path in paths))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", help="what is changed; without: what differs from --since")
    parser.add_argument("--since", default="HEAD", metavar="REVISION", help="from where HEAD left it")
    parser.add_argument("--seconds", type=float, default=300, help="of tests that are run; others are named at the end")
    parser.add_argument("--list", action="store_true", help="run nothing")
    asked = parser.parse_args()
    near = Near(ROOT)
    changed = dict(changes(asked.since, asked.files))
    weights = sum((near.reached(path, lines) for path, lines in changed.items()), Counter[str]())
    run, left = nearest(near, weights, asked.seconds)
    print(*(f"{near.seconds.get(test, UNKNOWN):6.0f} s  {test}" for test in run), sep="\n")
    commands = [[sys.executable, "-m", "pytest", "-q", "-m", UNIT, *run]] if run else []
    if any(path.startswith("labextension/") for path in changed):
        commands.append(["jlpm", "test"])
    codes = [subprocess.run(each, cwd=ROOT, check=False).returncode for each in commands if not asked.list]
    print(*not_run(left, changed, asked.seconds), sep="\n")  # last, where it is seen
    return max(codes, default=0)


if __name__ == "__main__":
    sys.exit(main())
