"""Cases that the repository keeps, one of each kind; run as a program it writes those that are missing.

They are opened by every later version, so none is written anew. They name no folder of this machine.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import devtrace
from corpus_programs import CORPUS, DTYPES
from devtrace.api.results import Report
from devtrace.recording.context import hooks
from folders import ROOT, TESTS
from goldens import GOLDEN
from programs import Outcome, program_of
from warm import Warm

KEPT = GOLDEN / "cases"
PROGRAMS = {
    "recorded": CORPUS / "attached-after-move" / "new_language" / "bug.py",
    "untraced": CORPUS / "never-moved" / "pad_mask" / "bug.py",
    "of-dtypes": DTYPES / "never-cast" / "second_input" / "bug.py",
    "of-costs": CORPUS / "costs" / "progress_line" / "bug.py",
    "of-memory": TESTS / "findings" / "out-of-memory.py",
}
"""The kinds of cases, each with the program that its case is of."""

ALONE = """
import sys
sys.modules["torch"] = sys.modules["IPython"] = None  # importing them is an error
import devtrace
for file in sys.argv[1:]:
    print(devtrace.diagnose(devtrace.load(file)), end="\\n\\n")
"""


def save(kind: str, path: str, file: str) -> None:
    """Run a program, and save its case and the text of its report."""
    report = _report_of(kind, path)
    report.trace.save(file, case=True)
    data = json.loads(_without_places(Path(file).read_text()))
    data["case"] |= packed(json.loads(_without_places(json.dumps(unpacked(data["case"])))))
    Path(file).write_text(json.dumps(data, separators=(",", ":")))
    Path(file).with_suffix(".txt").write_text(f"{report.text}\n")


def unpacked(case: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(case["data"])))
    return found


def packed(found: Mapping[str, Any]) -> dict[str, str]:
    text = json.dumps(found, separators=(",", ":"))
    return {"data": base64.b64encode(zlib.compress(text.encode(), 9)).decode()}


def _report_of(kind: str, path: str) -> Report:
    if hasattr(program := program_of(path), "report"):
        found: Report = program.report()
        return found
    if kind == "untraced":
        hooks.install()
        try:
            with devtrace.simulate("cuda:2"):
                program.run("cuda:0")
        except RuntimeError as error:
            return devtrace.explain(error)
    recording = devtrace.record("cuda:2")
    with suppress(RuntimeError), recording:
        program.run("cuda:0")
    return recording.report


def _without_places(text: str) -> str:
    places: dict[str, Any] = {sys.prefix: "/env", str(ROOT / "tests"): "/programs", sys.base_prefix: "/python"}
    for place, name in (places | {str(ROOT): "/devtrace"}).items():
        text = text.replace(place, name)
    return text


def read_alone(*files: Path, language: str = "en") -> str:
    """Return the reports of cases in a process of its own, in which torch cannot be imported."""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "DEVTRACE_LANGUAGE": language}
    command = [sys.executable, "-c", ALONE, *map(str, files)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=True).stdout


def assert_diagnosed_alone(outcomes: Iterable[Outcome], folder: Path) -> None:
    """Hold the reports of programs that ran to those that a process without torch makes of their files."""
    expected = {}
    for number, outcome in enumerate(each for each in outcomes if each.case):
        file = folder / f"{number}.devtrace"
        file.write_text(outcome.case)
        expected[file] = f"{outcome.text}\n\n"
    assert read_alone(*expected) == "".join(expected.values())


if __name__ == "__main__":
    with Warm() as warm:
        for kind, path in PROGRAMS.items():
            if not (KEPT / f"{kind}.devtrace").exists():
                warm.call("kept_cases", "save", kind, str(path), str(KEPT / f"{kind}.devtrace"))
