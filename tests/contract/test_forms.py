"""One contract for machines: every form of a report has the same findings in the same order, and keeps its schema."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import jsonschema
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import devtrace
from devtrace.api.results import Report, diagnose
from devtrace.contract.code_scanning import github_annotations, sarif
from devtrace.contract.entries import Entry, entries_of
from devtrace.contract.findings_json import FINDINGS_TYPE, MOST_BYTES, compact, read, size
from devtrace.diagnosis.findings import Culprit, Edit, Finding, Line, Site, from_json, to_json
from folders import ROOT, TESTS
from job_programs import JOBS, files_of_job
from warm import Warm

SCHEMA: Final = json.loads((ROOT / "src" / "devtrace" / "findings.schema.json").read_text())
FINDINGS: Final = jsonschema.Draft202012Validator(SCHEMA)
SARIF: Final = jsonschema.Draft202012Validator(json.loads((TESTS / "data" / "sarif-2.1.0.json").read_text()))
"""From the npm package @microsoft/sarif-multitool-linux 5.7.0 (MIT), which ships OASIS's schema."""
COSTLY_AND_BROKEN = """import torch

weight = torch.ones(3, 3)
x = torch.zeros(3, device="cuda:0")
total = 0.0
for step in range(40):
    x = x * 0.5
    total += x.sum().item()  # 100%, each step
print("ünï", x.cpu())
x @ weight
"""


def read_back(line: str) -> dict[str, str]:
    """Read a command as GitHub's runner does."""
    _, command, message = line.split("::", 2)
    level, _, properties = command.partition(" ")
    found = dict(each.split("=", 1) for each in properties.split(","))
    return {"level": level, "message": unquoted(message), **{key: unquoted(value) for key, value in found.items()}}


def unquoted(text: str) -> str:
    for code, character in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(code, character)
    return text


def words(text: str) -> str:
    return re.sub(r"\s+", " ", unquote(text))


def in_short(finding: dict[str, Any]) -> dict[str, Any]:
    """Return what all forms say of a finding of the whole JSON."""
    site = finding["site"] or {}
    return {
        "rule": finding["rule"],
        "level": finding["level"],
        "at": (Path(site.get("file", "")).name, site.get("line")),
        "message": finding["message"],
    }


def of_compact(finding: dict[str, Any]) -> dict[str, Any]:
    level = "error" if finding.get("limit") else finding["severity"]
    return in_short({"level": level, "site": None, **finding})


def of_sarif(result: dict[str, Any]) -> dict[str, Any]:
    where = result["locations"][0]["physicalLocation"]
    at = (Path(where["artifactLocation"]["uri"]).name, where["region"]["startLine"])
    message = result["message"]["text"].rpartition("\nFix: ")[0] or result["message"]["text"]
    return {"rule": result["ruleId"], "level": result["level"], "at": at, "message": message}


def of_annotation(line: str) -> dict[str, Any]:
    got = read_back(line)
    message = got["message"].rpartition("\nFix: ")[0] or got["message"]
    at = (Path(got["file"]).name, int(got["line"]))
    level = {"notice": "note"}.get(got["level"], got["level"])
    return {"rule": got["title"].removeprefix("devtrace "), "level": level, "at": at, "message": message}


@pytest.mark.slow
@pytest.mark.parametrize("notes", [(), ("--notes",)], ids=["", "notes"])
def test_text_json_compact_sarif_annotations_and_mime_entry_agree_finding_by_finding(
    notes: tuple[str, ...], tmp_path: Path, warm: Warm
) -> None:
    (tmp_path / "train.py").write_text(COSTLY_AND_BROKEN)
    files = ("--json", "a.json", "--sarif", "a.sarif", "--save", "a.devtrace")
    github = {"GITHUB_ACTIONS": "true"}
    flags = ("--simulate", "cuda:1", "--fail-on", "warning", *files, *notes)
    ran = warm.devtrace(tmp_path, "run", *flags, "train.py", environment=github)
    assert ran.returncode == 1

    whole, log = (json.loads((tmp_path / name).read_text()) for name in ("a.json", "a.sarif"))
    FINDINGS.validate(whole)
    SARIF.validate(log)
    expected = [in_short(finding) for finding in whole["findings"]]
    alarms = [each for each in expected if each["level"] != "note"]
    assert [finding["severity"] for finding in whole["findings"]] == ["error", "warning", "note"]
    assert [each["level"] for each in expected] == ["error", "error", "note"]

    shown = expected if notes else alarms
    assert [of_sarif(result) for result in log["runs"][0]["results"]] == shown
    assert [of_annotation(line) for line in ran.stderr.splitlines() if line.startswith("::")] == shown
    printed = words(ran.stderr.partition("\n::")[0])
    at = [printed.index(words(each["message"])) for each in alarms]
    assert at == sorted(at)
    assert len(re.findall("^(?:✗|!) ", ran.stderr, re.M)) == len(alarms)

    reported = warm.devtrace(tmp_path, "report", "a.devtrace", "--json=compact", "--fail-on=warning", *notes)
    assert reported.returncode == 1
    short = json.loads(reported.stdout)
    FINDINGS.validate(short)
    assert [of_compact(finding) for finding in short["findings"]] == alarms
    assert short["findings"][0]["site"] == {"file": "train.py", "line": 10, "text": "x @ weight"}
    entry = diagnose(devtrace.load(tmp_path / "a.devtrace"))._repr_mimebundle_()[0][FINDINGS_TYPE]
    FINDINGS.validate(entry)
    assert [finding["message"] for finding in entry["findings"]] == [each["message"] for each in alarms]
    assert [finding.message for finding in read(tmp_path / "a.json")] == [each["message"] for each in expected]


def test_what_broke_a_limit_comes_first_and_is_an_error_in_code_scanning() -> None:
    findings = [Finding("device-mismatch", "error"), Finding("host-sync", "warning"), Finding("host-sync", "note")]
    assert [(entry.level, entry.limit) for entry in entries_of(findings, "warning")] == [
        ("error", "--fail-on warning"), ("error", "--fail-on warning"), ("note", "")
    ]  # fmt: skip
    assert [entry.limit for entry in entries_of(findings, "error")] == ["--fail-on error", "", ""]


def report_of(*findings: Finding) -> Report:
    with devtrace.record() as recording:
        pass
    return replace(recording.report, findings=findings)


def test_an_entry_of_an_output_has_room_for_few_and_counts_those_left_out() -> None:
    site = Site("a.py", 3, text="x" * 3_000)
    culprit = Culprit("a.b", tuple(f"name{number}" for number in range(9)), "cpu", born=site)
    edits = (Edit("a.py", None, 3, "x = 1", "x = 2"),)
    broken = Finding("device-mismatch", "error", "never-moved", site=site, culprit=culprit, message="漢" * 900)
    short = compact(report_of(*[replace(broken, edits=edits)] * 40), most=MOST_BYTES)
    FINDINGS.validate(short)
    assert 0 < len(short["findings"]) < 40
    assert len(short["findings"]) + short["left_out"] == 40
    assert size(short) <= MOST_BYTES
    assert short["findings"][0]["culprit"]["names"] == ["name0", "name1", "name2"]
    assert short["findings"][0]["edits"] == [{"file": "a.py", "line": 3, "before": "x = 1", "after": "x = 2"}]


def test_a_cell_is_named_by_its_number_and_by_no_file() -> None:
    finding = Finding("host-sync", "warning", site=Site("ipython-input", 2, text="x.item()", cell=7), message="waits")
    short = compact(report_of(finding))
    FINDINGS.validate(short)
    assert short["findings"][0]["site"] == {"cell": 7, "line": 2, "text": "x.item()"}


def test_a_test_is_named_in_each_of_its_findings() -> None:
    entry = Entry(Finding("host-sync", "note"), "syncs=0", "test_a.py::test_step")
    assert {key: entry.to_json()[key] for key in ("severity", "level", "limit", "test")} == {
        "severity": "note", "level": "error", "limit": "syncs=0", "test": "test_a.py::test_step"
    }  # fmt: skip


@pytest.mark.slow
def test_a_bug_that_only_ranks_together_show_fails_the_report_of_the_job_with_its_line(
    tmp_path: Path, warm: Warm
) -> None:
    files = files_of_job(warm, JOBS / "rank-device" / "checkpoint" / "bug.py", 4, tmp_path)
    for rank in files:
        assert warm.devtrace(tmp_path, "report", rank).returncode == 0
    ran = warm.devtrace(tmp_path, "report", *files, "--json=a.json", "--sarif=a.sarif")
    assert ran.returncode == 1
    assert "bug.py line 19   state = torc" in ran.stdout
    whole, log = (json.loads((tmp_path / name).read_text()) for name in ("a.json", "a.sarif"))
    FINDINGS.validate(whole)
    [alarm] = [finding for finding in whole["findings"] if finding["level"] != "note"]
    assert (alarm["rule"], alarm["site"]["line"]) == ("rank-device", 19)
    [result] = log["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 19
    assert warm.devtrace(tmp_path, "report", *files, "--fail-on=error").returncode == 0


@pytest.mark.slow
def test_a_traceback_that_was_saved_as_text_is_explained_by_its_line(tmp_path: Path, warm: Warm) -> None:
    (tmp_path / "train.py").write_text(COSTLY_AND_BROKEN)
    ended = warm.python(tmp_path, "train.py", "cuda:1")
    (tmp_path / "log.txt").write_text(f"epoch 1\n{ended.stderr}\n")
    explained = warm.devtrace(tmp_path, "explain", "log.txt", "--json=compact")
    assert explained.returncode == 1
    short = json.loads(explained.stdout)
    FINDINGS.validate(short)
    [finding] = short["findings"]
    assert (finding["rule"], finding["site"]["line"], finding["devices"]) == ("device-mismatch", 10, ["cuda:0", "cpu"])
    (tmp_path / "other.txt").write_text("Traceback (most recent call last):\nValueError: no such thing\n")
    other = warm.devtrace(tmp_path, "explain", "other.txt", "--json=compact")
    assert (other.returncode, json.loads(other.stdout)["findings"]) == (0, [])


def test_a_rule_or_a_cause_is_explained_by_its_name_unless_a_file_has_that(tmp_path: Path, warm: Warm) -> None:
    explained = warm.devtrace(tmp_path, "explain", "never-moved", environment={"DEVTRACE_LANGUAGE": "zh"})
    assert explained.returncode == 0
    assert re.match("never-moved\n\n在 CPU 上创建.*\n\n    .*✗", explained.stdout, re.S)
    (tmp_path / "never-moved").write_text("ValueError: no such thing\n")
    assert "not about devices" in warm.devtrace(tmp_path, "explain", "never-moved").stdout


FEW = settings(max_examples=25, deadline=None)
WORDS = st.text(max_size=12)
FILES = st.text("aé /%,:\n", max_size=6)
SITES = st.builds(
    Site, FILES, *[st.integers(-1, 99)] * 4, WORDS, WORDS, st.none() | st.integers(0, 9), WORDS
)  # fmt: skip
EDITS = st.lists(st.builds(Edit, FILES, st.none() | st.integers(0, 9), st.integers(0, 99), WORDS, WORDS), max_size=3)
TEXTS = st.lists(WORDS, max_size=3).map(tuple)
NUMBERS = st.lists(st.integers(0, 9), max_size=3).map(tuple)
CHAINS = st.lists(SITES, max_size=2).map(tuple)
CULPRITS = st.builds(
    Culprit, WORDS, TEXTS, WORDS, NUMBERS, WORDS, st.none() | SITES, st.none() | SITES, CHAINS,
    st.sampled_from(["seen", "inferred"]),
)  # fmt: skip
ANY_FINDING = st.builds(
    Finding,
    st.sampled_from(["device-mismatch", "host-sync", "dtype-cost"]), st.sampled_from(["error", "warning", "note"]),
    st.sampled_from(["never-moved", ""]), TEXTS, st.none() | SITES, st.integers(-1, 9), st.none() | CULPRITS,
    st.integers(0, 9), st.integers(0, 9), WORDS, WORDS, EDITS.map(tuple), NUMBERS,
    st.lists(st.builds(Line, WORDS, SITES, WORDS), max_size=2).map(tuple),
)  # fmt: skip


@FEW
@given(ANY_FINDING)
def test_a_finding_read_back_from_json_is_the_same(finding: Finding) -> None:
    assert from_json(json.loads(json.dumps(to_json(finding)))) == finding


@FEW
@given(ANY_FINDING)
def test_a_finding_read_back_from_a_trace_is_the_same_and_what_a_trace_lacks_is_left_out(finding: Finding) -> None:
    rows: list[Site] = []

    def row_of(site: Site | None) -> int:
        rows.extend([site] if site else [])
        return len(rows) - 1 if site else -1

    stored = json.loads(json.dumps(to_json(finding, row_of)))
    assert from_json(stored, lambda row: rows[row] if row >= 0 else None) == finding
    bare = from_json(stored, lambda row: None)
    assert (bare.site, bare.lines, bare.message) == (None, (), finding.message)
    assert bare.culprit is None or (bare.culprit.born, bare.culprit.chain) == (None, ())


ABOVE_ALL_LINES: Final = Finding("host-sync", "error", edits=(Edit("a.py", None, 0, "x", ""),))
"""Its edit takes the place of a line that no file has, as one may read of a trace that another tool wrote."""


@FEW
@example([ABOVE_ALL_LINES], [])
@given(st.lists(ANY_FINDING, max_size=3), st.lists(WORDS, max_size=2))
def test_any_findings_keep_the_schema_of_sarif(findings: list[Finding], notes: list[str]) -> None:
    SARIF.validate(sarif(map(Entry, findings), notes, Path("/project")))


@FEW
@given(st.lists(ANY_FINDING, max_size=3))
def test_an_annotation_is_one_line_that_reads_back_as_its_message(findings: list[Finding]) -> None:
    for finding, line in zip(findings, github_annotations(map(Entry, findings), Path("/project")), strict=True):
        assert len(line.split("\n")) == len(line.split("\r")) == 1
        assert read_back(line)["message"].startswith(finding.message)


def test_a_fix_is_text_that_replaces_whole_lines() -> None:
    site = Site("/project/a.py", 2)
    finding = Finding("device-mismatch", "error", "never-moved", (), site, help="move it")
    edits = (Edit("/project/a.py", None, 2, "x = 1\ny = 2", "x = 3"), Edit("/project/b c.py", None, 4, "", "z = 1"))
    (result,) = sarif([Entry(replace(finding, edits=edits))], [], Path("/project"))["runs"][0]["results"]
    first, second = result["fixes"][0]["artifactChanges"]
    assert first["replacements"] == [replacement(2, 4, "x = 3\n")]
    assert second["replacements"] == [replacement(5, 5, "z = 1\n")]
    assert second["artifactLocation"] == {"uri": "b%20c.py", "uriBaseId": "SRCROOT"}


def replacement(first: int, after: int, text: str) -> dict[str, Any]:
    region = {"startLine": first, "startColumn": 1, "endLine": after, "endColumn": 1}
    return {"deletedRegion": region, "insertedContent": {"text": text}}
