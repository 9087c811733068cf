"""Asks the tests under which something has changed since they last passed, for `make test`.

    python tools/asked.py unit pytest -q     runs the command with these folders of tests behind it
    python tools/asked.py wheel make ...     runs the command, if one of the target's is asked

The tests of a package stand on it and on all that it may import (the layers of `tests/project/test_layers.py`), on the
harness and on what is installed. On a clean checkout, as CI has it, nothing has passed, and all are asked.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "project"), str(ROOT / "tests" / "harness")]

ALLOWED: Final[dict[str, set[str]]] = import_module("test_layers").ALLOWED
digest: Final = import_module("cases").digest

PASSED: Final = ROOT / "build" / "passed.json"
PAGE: Final = ("labextension", "src/devtrace/labextension", "src/devtrace/static")
TESTS: Final = [each for each in sorted((ROOT / "tests").iterdir()) if each.is_dir() and each.name[0] not in "_."]
OF_TESTS: Final = [each for each in TESTS if any(each.rglob("test_*.py"))]
PROGRAMS: Final = tuple(f"tests/{each.name}" for each in TESTS if each not in OF_TESTS and each.name != "actual")
COMMON: Final = (*PROGRAMS, "tests/conftest.py", "requirements", "pyproject.toml")
SOURCES: Final = "src/devtrace"
DOORS: Final = ("api", "budget", "cli", "fixing", "notebook", "project", "notebooks", "wheel")
"""What a user starts: its tests run whole programs, kernels and servers, and ask what a report is put into."""
SAYS: Final = ("rules", "causes")
"""Folders of what a report says, a finding each: a change there is asked of its judges, and of all others in CI."""
JUDGES: Final = {"diagnosis": ("diagnosis", "dtypes", "explaining")}
"""Who asserts what is said; of another package its own tests."""
SHARED: Final = ("evidence", "fixes")
"""Folders that all findings stand on: a change there is asked of who makes reports, and of the doors in CI."""
SEEN: Final = tuple(f"{SOURCES}/{name}" for name in ("notebook", "report", "api", "cli", "fixing", "drawing"))


def under(folder: str) -> tuple[str, ...]:
    """Return the files and folders that the tests of a folder, or target, stand on."""
    if folder == "e2e":
        return (*SEEN, *PAGE, *COMMON)
    here = {each.name for each in (ROOT / SOURCES).iterdir()} - {"__pycache__"}
    packages = below(folder) if folder in ALLOWED else here
    places = [place for name in sorted(packages) for place in inside(name, folder)]
    page = PAGE if packages & {"report", "notebook"} else ()
    beside = () if folder in ALLOWED else ("tools", "docs", "notebooks")
    return (*places, f"{SOURCES}/features.py", *beside, *page, *COMMON)


def inside(package: str, tests: str) -> list[str]:
    """Return what of a package a folder of tests stands on: whole, or without what it does not judge."""
    folder = ROOT / SOURCES / package
    is_judge = tests in JUDGES.get(package, (package,))
    left_out = {*(() if is_judge else SAYS), *(SHARED if tests in DOORS else ()), "__pycache__"}
    if not folder.is_dir() or len(left_out) == 1:
        return [f"{SOURCES}/{package}"]
    return [f"{SOURCES}/{package}/{each.name}" for each in sorted(folder.iterdir()) if each.name not in left_out]


def below(package: str) -> set[str]:
    """Return a package with all that it may import."""
    found, waiting = set[str](), [package]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += ALLOWED.get(name, ())
    return found


def state(folders: Iterable[str]) -> dict[str, str]:
    """Return for each folder of tests what it stands on now."""
    places = {folder: (f"tests/{folder}", *under(folder)) for folder in folders}
    joined = {folder: "".join(map(digest, each)) + sys.version for folder, each in places.items()}
    return {folder: hashlib.sha256(text.encode()).hexdigest() for folder, text in joined.items()}


def folders_of(target: str) -> list[str]:
    return [each.name for each in OF_TESTS if each.name != "e2e"] if target == "unit" else [target]


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return found


def main() -> int:
    target, *command = sys.argv[1:]
    now, passed = state(folders_of(target)), read(PASSED).get(target, {})
    asked = [f"tests/{folder}" for folder, each in now.items() if passed.get(folder) != each]
    print("asked:", *(asked or ["nothing, all have passed"]), flush=True)
    code = subprocess.run([*command, *(asked if target == "unit" else ())], check=False).returncode if asked else 0
    if not code:
        PASSED.parent.mkdir(exist_ok=True)
        PASSED.write_text(json.dumps(read(PASSED) | {target: now}))
    return code


if __name__ == "__main__":
    sys.exit(main())
