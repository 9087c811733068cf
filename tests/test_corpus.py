"""Device bugs of thirteen groups: the tensor, the line that made it, the line that failed, devices, cause and fix."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from devtrace.diagnosis.edits import applied
from devtrace.diagnosis.findings import Edit
from programs import Said, run

CORPUS = Path(__file__).with_name("corpus")
KINDS = {
    "sync": "host-sync",
    "h2d_copy": "host-to-device-copy",
    "d2h_copy": "device-to-host-copy",
    "d2d_copy": "device-to-device-copy",
    "cpu_compute": "cpu-compute",
}


def cases(*, silent: bool) -> list[Any]:
    found = [json.loads(path.read_text()) for path in sorted(CORPUS.glob("*.expected.json"))]
    return [pytest.param(case, id=case["id"]) for case in found if case["silent"] == silent]


def program(case: dict[str, Any], folder: Path = CORPUS) -> Said:
    return _ran(folder / case["file"], tuple(case["call"]["args"]))


@cache
def _ran(path: Path, args: tuple[str, ...]) -> Said:
    """Once for all tests: what a program does depends on nothing else."""
    return run(path, args)


def parts(name: str) -> list[str]:
    return [part for part in re.split(r"[.\[\]'\"]+", name) if part and part != "self"]


def fits(said: str, wanted: str) -> bool:
    """Whether two names end alike, a bare `weight` aside."""
    one, other = parts(said), parts(wanted.rpartition(":")[2] if re.match(r"[\w.]+:\w", wanted) else wanted)
    shared = min(len(one), len(other))
    bare = shared == 1 and one != other and one[-1] in ("weight", "bias")
    return shared > 0 and one[-shared:] == other[-shared:] and not bare


@pytest.mark.parametrize("case", cases(silent=False))
def test_a_mismatch_is_explained(case: dict[str, Any]) -> None:
    said = program(case)
    assert re.search(case["error_regex"], said.raised)
    finding = said.errors[0]
    assert finding.culprit is not None
    names = (finding.culprit.name, *finding.culprit.names)
    assert any(
        fits(name, wanted) for name in names for wanted in (case["culprit"]["name"], *case["culprit"]["aliases"])
    )
    born, fix, failed = (case.get(key, case["file"]) for key in ("born_file", "fix_file", "failed_file"))
    places = {(Path(place.file).name, place.line) for place in (finding.culprit.born, *finding.edits) if place}
    assert places & ({(born, line) for line in case["accept_created_lines"]} | {(fix, case["fix_line"])})
    assert finding.site is not None
    assert Path(finding.site.file).name == failed
    assert finding.site.line in case["accept_failed_lines"]
    assert {*finding.devices} == {*case["devices"]}
    assert finding.cause in case["causes"]
    assert max(map(len, said.text.splitlines())) <= 100
    assert not said.notes


@pytest.mark.parametrize("case", cases(silent=False))
def test_its_edit_makes_the_program_run_clean(case: dict[str, Any], tmp_path: Path) -> None:
    finding = program(case).errors[0]
    assert finding.edits
    for path in CORPUS.glob(f"{case['id']}*.py"):
        edits: list[Edit] = [edit for edit in finding.edits if Path(edit.file).name == path.name]
        shutil.copy(path, tmp_path)
        (tmp_path / path.name).write_text(applied(path.read_text(), edits))
    mended = program(case, tmp_path)
    assert (mended.raised, mended.alarms) == ("", [])


@pytest.mark.parametrize("case", cases(silent=True))
def test_what_wastes_time_is_counted_exactly(case: dict[str, Any]) -> None:
    said = program(case)
    assert (said.raised, said.errors) == ("", [])
    counts: Counter[tuple[str, str, int]] = Counter()
    for finding in said.findings:
        if finding.site is not None:
            counts[finding.rule, Path(finding.site.file).name, finding.site.line] += finding.count
    for expected in case["findings"]:
        least, most = expected.get("count_range", [expected["count_per_run"]] * 2)
        seen = counts[KINDS[expected["kind"]], expected.get("file", case["file"]), expected["line"]]
        assert least <= seen <= most, f"{expected['kind']} at line {expected['line']}"


@pytest.mark.parametrize("case", [*cases(silent=False), *cases(silent=True)])
def test_the_mended_program_raises_no_alarm(case: dict[str, Any]) -> None:
    said = program(case, CORPUS / "fixed")
    assert (said.raised, said.alarms) == ("", [])
