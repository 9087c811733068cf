"""A saved case gives the report of the program that it is of, anywhere: without torch, in the reader's language."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import trace_schema

import devtrace
from corpus_programs import COSTLY, FAILING, OF_DTYPES
from devtrace.diagnosis.saved_case import of_json
from devtrace.words.errors import FormatError
from kept_cases import KEPT, PROGRAMS, assert_diagnosed_alone, packed, read_alone, unpacked
from shells import new_shell
from warm import Warm

PROGRAM = """import torch
secret = "correct horse battery staple"
table = torch.ones(4)
net = torch.nn.Linear(4, 4).cuda()
optimizer = torch.optim.Adam(net.parameters())
for _ in range(20):
    net(torch.randn(8, 4).cuda()).sum().backward()
    optimizer.step()
net(torch.randn(2, 4).cuda()) + table
"""


def case_in(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text())["case"]
    return found


def test_a_case_of_each_kind_that_an_older_devtrace_saved_is_diagnosed_as_then() -> None:
    files = sorted(KEPT.glob("*.devtrace"))
    assert [file.stem for file in files] == sorted(PROGRAMS)
    assert read_alone(*files) == "\n".join(file.with_suffix(".txt").read_text() for file in files) + "\n"
    assert sum(file.stat().st_size for file in files) < 2_000_000
    for file in files:
        jsonschema.validate(json.loads(file.read_text()), trace_schema.schema())


@pytest.mark.parametrize("file", sorted((KEPT / "strangers").glob("*.devtrace")), ids=lambda file: str(file.stem))
def test_a_strangers_case_has_the_report_and_the_edits_that_are_beside_it(file: Path) -> None:
    report = devtrace.diagnose(devtrace.load(file))
    edits = [edit.after for finding in report.findings for edit in finding.edits]
    assert "\n".join([str(report), *edits, ""]) == file.with_suffix(".txt").read_text()


def test_a_case_is_diagnosed_in_the_language_of_its_reader() -> None:
    expected = PROGRAMS["recorded"].with_name("report.zh.txt")
    assert read_alone(KEPT / "recorded.devtrace", language="zh").strip() == expected.read_text().strip()


@pytest.mark.breadth
def test_each_program_of_the_corpora_gets_its_report_from_its_file_without_torch(tmp_path: Path, warm: Warm) -> None:
    outcomes = [each.outcome(warm) for each in (*FAILING, *COSTLY, *OF_DTYPES)]
    assert_diagnosed_alone([*outcomes, *(each.outcome(warm, "untraced") for each in (*FAILING, *OF_DTYPES))], tmp_path)


def test_the_command_line_saves_a_case_and_diagnoses_it_again(tmp_path: Path, warm: Warm) -> None:
    (tmp_path / "mine.py").write_text(PROGRAM)
    warm.devtrace(tmp_path, "run", "--simulate", "cuda:1", "--save", "run.devtrace", "--case", "mine.py")
    file = tmp_path / "run.devtrace"
    assert len(devtrace.load(file).ops) > 400
    assert file.stat().st_size < 100_000
    assert "correct horse" not in json.dumps(unpacked(case_in(file)) | {"files": {}, "trace": {}})
    (tmp_path / "mine.py").unlink()
    again = warm.devtrace(tmp_path, "report", "run.devtrace", "--again")
    assert again.stdout == warm.devtrace(tmp_path, "report", "run.devtrace").stdout
    assert "`table` is on cpu" in again.stdout


def test_a_case_without_source_has_no_object_and_no_text(tmp_path: Path, warm: Warm) -> None:
    (tmp_path / "mine.py").write_text(PROGRAM)
    flags = ("--simulate", "cuda:1", "--save", "run.devtrace", "--case", "--no-source")
    warm.devtrace(tmp_path, "run", *flags, "mine.py")
    found = unpacked(case_in(tmp_path / "run.devtrace"))
    assert "optimizer" not in json.dumps(found["rows"])
    assert [file for file, (_, _, text) in found["files"].items() if text] == []
    assert "table = torch.ones(4)" not in json.dumps(found)
    assert "is on cpu" in warm.devtrace(tmp_path, "report", "run.devtrace", "--again").stdout


def test_a_notebook_saves_the_case_of_its_last_trace(tmp_path: Path) -> None:
    with new_shell("%load_ext devtrace") as shell:
        shell.run("%%devtrace --simulate cuda:1\nimport torch\ntable = torch.ones(4)\ntable + table.cuda()")
        shell.run(f"%devtrace save --case {tmp_path / 'cell.devtrace'}")
        shell.run("%%devtrace\ntable = torch.ones(1) + 1")
        older, newest = (each.trace.case for each in shell.traced)
    loaded = devtrace.load(tmp_path / "cell.devtrace")
    assert loaded.case is not None
    assert older is None  # of a notebook's traces the newest one can be saved so
    assert newest is not None
    (found,) = (each for each in devtrace.diagnose(loaded).findings if each.severity == "error")
    assert found.culprit is not None
    assert found.culprit.name == "table"


def test_a_report_that_is_copied_or_sent_to_another_process_goes_without_its_case() -> None:
    report = devtrace.diagnose(devtrace.load(KEPT / "recorded.devtrace"))
    for same in (copy.deepcopy(report), pickle.loads(pickle.dumps(report))):
        assert (same.text, same.findings, same.trace.case) == (report.text, report.findings, None)
    assert report.trace.case is not None


def test_a_case_can_be_saved_again(tmp_path: Path) -> None:
    loaded = devtrace.load(KEPT / "recorded.devtrace")
    report = devtrace.diagnose(loaded)
    report.trace.save(tmp_path / "again.devtrace", case=True)
    assert devtrace.diagnose(devtrace.load(tmp_path / "again.devtrace")).findings == report.findings
    loaded.save(tmp_path / "alone.devtrace")
    assert devtrace.load(tmp_path / "alone.devtrace").case is None


@pytest.mark.parametrize("change", [{"data": "AAAA"}, {"data": None}, {"data": "eJyrrgUAAXUA+Q=="}, {"version": "1"}])
def test_a_damaged_case_is_refused_in_a_sentence(change: dict[str, Any]) -> None:
    data = case_in(KEPT / "recorded.devtrace")
    with pytest.raises(FormatError, match="a case that cannot be read"):
        of_json(data | change)
    with pytest.raises(FormatError, match="newer"):
        of_json(data | {"version": 2})


def test_a_fact_of_a_feature_that_is_gone_is_left_out() -> None:
    data = case_in(KEPT / "of-memory.devtrace")
    found = unpacked(data)
    gone = dict.fromkeys(("Height", "Holding", "Shortage"), "Gone")
    found["rows"] = [[gone.get(row[0], row[0]), *row[1:]] for row in found["rows"]]
    case = of_json(data | packed(found))
    assert case is not None
    report = devtrace.diagnose(replace(devtrace.load(KEPT / "of-memory.devtrace"), case=case))
    assert "out-of-memory" not in [each.rule for each in report.findings]
    assert not [note for note in report.notes if "failed" in note]
