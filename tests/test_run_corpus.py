"""Programs under `devtrace run`: told the same as in a traced cell, and what they do is what they do without us."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

import devtrace
from devtrace.diagnose import diagnose
from devtrace.report import Report, Site, to_json
from warm import Ended, Warm

pytestmark = pytest.mark.slow

CORPUS = Path(__file__).with_name("corpus")
CASES = [json.loads(path.read_text()) for path in sorted(CORPUS.glob("*.expected.json"))]
SIMULATE = "cuda:2"


@pytest.fixture(scope="module")
def warm() -> Iterator[Warm]:
    with Warm() as warm:
        yield warm


@dataclass(frozen=True)
class Script:
    """A case as a script that runs itself and writes a file, and what it did under `devtrace run`."""

    folder: Path
    name: str
    under: Ended
    written: str | None


@pytest.fixture(scope="module", params=CASES, ids=lambda case: case["id"])
def script(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, warm: Warm) -> Script:
    case: dict[str, Any] = request.param
    folder = tmp_path_factory.mktemp("case")
    for part in CORPUS.glob(f"{case['id']}*.py"):
        shutil.copy(part, folder)
    call = f"{case['call']['function']}({', '.join(map(repr, case['call']['args']))})"
    file = folder / case["file"]
    file.write_text(f"{file.read_text().rstrip()}\n\n\nopen('result.txt', 'w').write(repr({call}))\nprint('done')\n")
    under = warm.devtrace(folder, "run", "--simulate", SIMULATE, "--save", "script.devtrace", file.name)
    return Script(folder, file.name, under, taken(folder / "result.txt"))


def taken(file: Path) -> str | None:
    """What a file holds, which is gone then."""
    if not file.exists():
        return None
    text = file.read_text()
    file.unlink()
    return text


def test_a_script_is_told_what_a_traced_cell_of_the_same_lines_is_told(script: Script, warm: Warm) -> None:
    docstring, *lines = (script.folder / script.name).read_text().splitlines()
    assert docstring.startswith('"""')
    magic = f"%%devtrace --simulate {SIMULATE} --save cell.devtrace"
    (script.folder / "cell.txt").write_text("\n".join([magic, *lines]))
    warm.cell(script.folder, "cell.txt")
    told, in_cell = (diagnose(devtrace.load(script.folder / f"{name}.devtrace")) for name in ("script", "cell"))
    assert told.findings
    assert told.text in script.under.stderr
    assert said(told, script.name) == said(in_cell, script.name)


def said(report: Report, script: str) -> str:
    """All that a report says, with places in the cell as places in the script."""
    findings: list[Any] = [to_json(finding, place) for finding in report.findings]
    for edit in (edit for finding in findings for edit in finding["edits"]):
        edit["file"] = Path(edit["file"]).name if edit.pop("cell") < 0 else script
    ledger = [{**asdict(row), "site": place(row.site)} for row in report.ledger]
    return re.sub(r"In\[\d+\]", script, json.dumps([findings, ledger, report.notes], indent=1))


def place(site: Site | None) -> Any:
    """A site by its words, where `to_json` asks for its row."""
    return site and [str(site), site.column, site.function, site.text]


def test_a_script_prints_exits_raises_and_writes_as_without_devtrace(script: Script, warm: Warm) -> None:
    plain = warm.python(script.folder, script.name, SIMULATE)
    assert (script.under.stdout, script.under.returncode) == (plain.stdout, plain.returncode)
    before_the_report = script.under.stderr[: len(as_on_a_gpu(plain.stderr))]
    assert before_the_report == as_on_a_gpu(plain.stderr)
    assert script.written == taken(script.folder / "result.txt")


def as_on_a_gpu(stderr: str) -> str:
    """The traceback without the frames that are there only because a fork was told to run it, on pretended devices."""
    return re.sub(
        r'  File "(<frozen runpy>|.*/warm\.py|.*/devtrace/simulate/.*|.*/torch/_ops\.py)".*\n(    .*\n)*', "", stderr
    )
