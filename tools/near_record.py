"""Record which test file runs which function, for `make near`: tests/data/near.json.

    make near-record                                 every test file anew
    make near-record FILES="tests/words/test_a.py"   these anew, the others as they are

Each file's tests run in a Python of their own under coverage, which follows forks and children (pyproject.toml). The
cases are those of `make test`, which are also those of `make near`.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[1]
MAP: Final = Path("tests/data/near.json")
APART: Final = ("breadth", "e2e", "foreign", "notebook", "wheel", "real")
UNIT: Final = " and ".join(f"not {mark}" for mark in APART)
WORKERS: Final = 2


class Function(NamedTuple):
    """Lines of a function or method, from its decorators on; a function within is part of it."""

    name: str
    first: int
    body: int
    last: int


class Ran(NamedTuple):
    """Functions that one test file ran, by source file, and its seconds."""

    seconds: float
    functions: dict[str, set[str]]


def functions(tree: ast.AST, inside: str = "") -> Iterator[Function]:
    """Yield functions by their qualified names, and other statements but imports and docstrings, without a name."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min(each.lineno for each in (node, *node.decorator_list))
            yield Function(inside + node.name, first, node.body[0].lineno, node.end_lineno or first)
        elif isinstance(node, ast.stmt) and hasattr(node, "body"):
            yield from functions(node, f"{inside}{node.name}." if isinstance(node, ast.ClassDef) else inside)
        elif isinstance(node, ast.stmt) and not isinstance(node, ast.Import | ast.ImportFrom | ast.Expr):
            yield Function("", node.lineno, node.lineno, node.end_lineno or node.lineno)


def named(text: str, lines: set[int]) -> set[str]:
    """Return the functions that have one of the lines, and "" where another statement has."""
    return {each.name for each in functions(ast.parse(text)) if not lines.isdisjoint(range(each.first, each.last + 1))}


def ran(text: str, lines: set[int]) -> set[str]:
    """Return the functions of which a line ran that does not run when its module is imported."""
    return {
        each.name
        for each in functions(ast.parse(text))
        if each.name and not lines.isdisjoint(range(max(each.body, each.first + 1), each.last + 1))
    }


def record(test: str) -> Ran:
    """Run the tests of a file."""
    from coverage import CoverageData
    from coverage.exceptions import DataError

    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"COVERAGE_FILE": f"{folder}/data"}
        command = ["-m", "coverage", "run", "-m", "pytest", "-q", "-m", UNIT, test]
        began = time.monotonic()
        done = subprocess.run([sys.executable, *command], cwd=ROOT, env=environment, capture_output=True, check=False)
        seconds = time.monotonic() - began
        print(f"{seconds:6.0f} s  {done.returncode}  {test}", flush=True)
        lines: defaultdict[str, set[int]] = defaultdict(set)
        for part in Path(folder).glob("data*"):
            data = CoverageData(str(part))
            with suppress(DataError):  # of a process that was killed as it wrote it
                data.read()
                for file in data.measured_files():
                    if Path(file).is_relative_to(ROOT):  # a copy of the sources, of a test, is gone with it
                        lines[file].update(data.lines(file) or ())
    texts = {file: Path(file).read_text(encoding="utf-8") for file in lines}
    found = {Path(file).relative_to(ROOT).as_posix(): ran(texts[file], lines[file]) for file in lines}
    return Ran(round(seconds), {file: names for file, names in found.items() if names})


def decode(recorded: dict[str, Any]) -> dict[str, Ran]:
    """Return what each test file ran, of a record that has a number for all who run a function, a bit for each."""
    tests = [Ran(seconds, {}) for seconds in recorded["seconds"].values()]
    for file, runs in recorded["functions"].items():
        for name, bits in runs.items():
            for number in numbers(bits):
                tests[number].functions.setdefault(file, set()).add(name)
    return dict(zip(recorded["seconds"], tests, strict=True))


def encode(tests: dict[str, Ran]) -> dict[str, Any]:
    bits: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for number, test in enumerate(sorted(tests)):
        for file, names in tests[test].functions.items():
            bits[file].update(dict.fromkeys(names, 1 << number))
    functions = {file: {name: f"{runs[name]:x}" for name in sorted(runs)} for file, runs in sorted(bits.items())}
    return {"seconds": {test: tests[test].seconds for test in sorted(tests)}, "functions": functions}


def numbers(bits: str) -> list[int]:
    """Return the numbers of the bits that are set in a hexadecimal number."""
    value = int(bits, 16)
    return [number for number in range(value.bit_length()) if value >> number & 1]


def main(files: list[str]) -> None:
    path = ROOT / MAP
    known = decode(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}
    tests = [test.relative_to(ROOT).as_posix() for test in sorted((ROOT / "tests").rglob("test_*.py"))]
    asked = files or [test for test in tests if not test.startswith("tests/e2e/")]
    with ThreadPoolExecutor(WORKERS) as pool:
        for test, run in zip(asked, pool.map(record, asked), strict=True):  # each is kept, if the next is broken off
            known[test] = run
            kept = {test: ran for test, ran in known.items() if test in tests and ran.functions}
            path.write_text(json.dumps(encode(kept), indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
