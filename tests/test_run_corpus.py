"""Programs under `devtrace run`: told the same as in a traced cell, and what they do is what they do without us."""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import devtrace
from devtrace.api.diagnose import diagnose
from devtrace.api.results import Report
from devtrace.diagnosis.findings import Site, to_json
from warm import Ended, Warm

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
SIMULATE = "cuda:2"


@dataclass(frozen=True)
class Case:
    """A program: its file in a folder of tests/, how it is called, and what it needs; `noisy`: it prints the time."""

    file: str
    call: str
    package: str = "torch"
    noisy: bool = False

    @property
    def here(self) -> bool:
        return find_spec(self.package) is not None or bool(os.environ.get("CI"))


def corpus() -> list[Case]:
    expected = [json.loads(path.read_text()) for path in sorted((HERE / "corpus").glob("*.expected.json"))]
    return [Case(f"corpus/{case['file']}", f"run({', '.join(map(repr, case['call']['args']))})") for case in expected]


SYSTEMS = [
    Case("systems/book_classifier.py", "run('cuda:0')", "llms_from_scratch"),
    Case("systems/recbole_evaluation.py", "run('Random')", "recbole", noisy=True),
    Case("systems/ai_toolkit/sampling.py", "run('cuda:0')"),
    Case("systems/ai_toolkit/control.py", "run('cuda:0')"),
    Case("systems/tagging_finetune.py", "run('cuda:0')"),
    Case("systems/keras_replicas.py", "run('cuda:0', 'cuda:1')", "keras"),
]


@dataclass(frozen=True)
class Script:
    """A case as a script that runs itself and writes a file, and what it did under `devtrace run`."""

    case: Case
    folder: Path
    name: str
    under: Ended
    written: str | None


@pytest.fixture(scope="module", params=[*corpus(), *SYSTEMS], ids=lambda case: case.file)
def script(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, warm: Warm) -> Script:
    case: Case = request.param
    if not case.here:
        pytest.skip(f"{case.package} is not installed (requirements/systems.txt)")
    file = tmp_path_factory.mktemp("case") / Path(case.file).name
    place = HERE / case.file
    if place.parent.name == "corpus":
        for part in place.parent.glob(f"{place.stem}*.py"):
            shutil.copy(part, file.parent)
    else:
        shutil.copytree(place.parent, file.parent, dirs_exist_ok=True)
    file.write_text(
        f"# A script.\n{place.read_text().rstrip()}\n\n\n"
        f"open('result.txt', 'w').write(repr({case.call}))\nprint('done')\n"
    )
    under = warm.devtrace(file.parent, "run", "--simulate", SIMULATE, "--save", "script.devtrace", file.name)
    return Script(case, file.parent, file.name, under, taken(file.with_name("result.txt")))


def taken(file: Path) -> str | None:
    """What a file holds, which is gone then."""
    if not file.exists():
        return None
    text = file.read_text()
    file.unlink()
    return text


def test_a_script_is_told_what_a_traced_cell_of_the_same_lines_is_told(script: Script, warm: Warm) -> None:
    _, *lines = (script.folder / script.name).read_text().splitlines()
    magic = f"%%devtrace --simulate {SIMULATE} --save {script.folder}/cell.devtrace"
    (script.folder / "cell.txt").write_text("\n".join([magic, *lines]))
    warm.cell(script.folder, "cell.txt", as_file=script.name)
    told, in_cell = (diagnose(devtrace.load(script.folder / f"{name}.devtrace")) for name in ("script", "cell"))
    assert told.findings
    assert told.text in script.under.stderr
    assert said(told, script.name) == said(in_cell, script.name)


def said(report: Report, script: str) -> str:
    """All that a report says, with places in the cell as places in the script."""
    findings: list[Any] = [to_json(finding, place) for finding in report.findings]
    for finding in findings:  # by name: the ops of DataParallel's threads come in no certain order
        finding["op"] = report.trace.ops[finding["op"]].name
        finding["ops"] = len(finding["ops"])
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
    assert before_the_report == as_on_a_gpu(plain.stderr) or script.case.noisy
    assert script.written == taken(script.folder / "result.txt")


def as_on_a_gpu(stderr: str) -> str:
    """The traceback without the frames that are there only because a fork was told to run it, on pretended devices."""
    return re.sub(
        r'  File "(<frozen runpy>|.*/warm\.py|.*/devtrace/simulation/.*|.*/torch/_ops\.py)".*\n(    .*\n)*', "", stderr
    )
