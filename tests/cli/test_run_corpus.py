"""Programs under `devtrace run`: the report is that of a traced cell, and they do what they do without devtrace."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

import devtrace
from corpus_programs import PROGRAMS
from devtrace.api.results import Report, diagnose
from devtrace.diagnosis.findings import Site, to_json
from folders import TESTS
from needs import installed
from warm import Ended, Warm

pytestmark = [pytest.mark.slow, pytest.mark.one_in(4)]

SIMULATE = "cuda:2"


@dataclass(frozen=True)
class Case:
    """A program: its file in a folder of tests/, how it is called, and the package that it needs.

    `timed`: it prints times.
    """

    file: str
    call: str
    package: str = "torch"
    timed: bool = False


def one_program_for_each_cause() -> list[Case]:
    """Return the first program of each folder; test_corpus runs all of them, though not through a command line."""
    first = {program.cause: program for program in reversed(PROGRAMS)}
    return [
        Case(f"corpus/{cause}/{program.name}/bug.py", f"run({', '.join(map(repr, program.arguments))})")
        for cause, program in sorted(first.items())
    ]


SYSTEMS = [
    Case("systems/book_classifier.py", "run('cuda:0')", "llms_from_scratch"),
    Case("systems/recbole_evaluation.py", "run('Random')", "recbole", timed=True),
    Case("systems/ai_toolkit/sampling.py", "run('cuda:0')"),
    Case("systems/ai_toolkit/control.py", "run('cuda:0')"),
    Case("systems/tagging_finetune.py", "run('cuda:0')"),
    Case("systems/keras_replicas.py", "run('cuda:0', 'cuda:1')", "keras"),
]


@dataclass(frozen=True)
class Script:
    """A case as a script that runs itself and writes a file, and how it ended under `devtrace run`."""

    case: Case
    folder: Path
    name: str
    ended: Ended
    written: str | None


CASES = [
    pytest.param(case, id=case.file.removesuffix("/bug.py"), marks=installed(case.package))
    for case in [*one_program_for_each_cause(), *SYSTEMS]
]


@pytest.fixture(scope="module", params=CASES)
def script(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, warm: Warm) -> Script:
    case: Case = request.param
    source = TESTS / case.file
    folder = tmp_path_factory.mktemp("case")
    shutil.copytree(source.parent, folder, dirs_exist_ok=True)
    file = folder / source.name
    file.write_text(
        f"# A script.\n{source.read_text().rstrip()}\n\n\n"
        f"open('result.txt', 'w').write(repr({case.call}))\nprint('done')\n"
    )
    ended = warm.devtrace(folder, "run", "--simulate", SIMULATE, "--save", "script.devtrace", file.name)
    return Script(case, folder, file.name, ended, taken(folder / "result.txt"))


def taken(file: Path) -> str | None:
    """Return the text of a file and delete the file."""
    if not file.exists():
        return None
    text = file.read_text()
    file.unlink()
    return text


def test_a_script_gets_the_report_of_a_traced_cell_of_the_same_lines(script: Script, warm: Warm) -> None:
    _, *lines = (script.folder / script.name).read_text().splitlines()
    magic = f"%%devtrace --simulate {SIMULATE} --save {script.folder}/cell.devtrace"
    (script.folder / "cell.txt").write_text("\n".join([magic, *lines]))
    warm.cell(script.folder, "cell.txt", as_file=script.name)
    of_script, of_cell = (diagnose(devtrace.load(script.folder / f"{name}.devtrace")) for name in ("script", "cell"))
    assert of_script.findings
    assert of_script.text in script.ended.stderr
    assert comparable(of_script, script.name) == comparable(of_cell, script.name)


def comparable(report: Report, script: str) -> str:
    """Return all of a report as text, with sites in the cell as sites in the script."""
    findings: list[Any] = [to_json(finding, words_of) for finding in report.findings]
    for finding in findings:  # by name: the ops of DataParallel's threads come in no certain order
        finding["op"] = report.trace.ops[finding["op"]].name
        finding["ops"] = len(finding["ops"])
    for edit in (edit for finding in findings for edit in finding["edits"]):
        edit["file"] = Path(edit["file"]).name if edit.pop("cell") is None else script
    ledger = [{**asdict(row), "site": words_of(row.site)} for row in report.ledger]
    return re.sub(r"In\[\d+\]", script, json.dumps([findings, ledger, report.notes], indent=1))


def words_of(site: Site | None) -> Any:
    """Return the words of a site, where `to_json` asks for its row."""
    return site and [str(site), site.column, site.function, site.text]


def test_a_script_prints_exits_raises_and_writes_as_without_devtrace(script: Script, warm: Warm) -> None:
    plain = warm.python(script.folder, script.name, SIMULATE)
    assert (script.ended.stdout, script.ended.returncode) == (plain.stdout, plain.returncode)
    scrub = without_times if script.case.timed else str
    assert scrub(script.ended.stderr).startswith(scrub(as_on_a_gpu(plain.stderr)))
    assert script.written == taken(script.folder / "result.txt")


def without_times(stderr: str) -> str:
    return re.sub(r"\d+([.:]\d+)*", "0", stderr)


def as_on_a_gpu(stderr: str) -> str:
    """Drop the traceback's frames that are there only because a fork runs the script, on simulated devices."""
    return re.sub(
        r'  File "(<frozen runpy>|.*/warm\.py|.*/devtrace/simulation/.*|.*/torch/_ops\.py)".*\n(    .*\n)*', "", stderr
    )
