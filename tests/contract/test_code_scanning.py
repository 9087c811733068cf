"""Findings as SARIF and as annotations: any finding keeps the schema, and reads back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import jsonschema
from hypothesis import example, given, settings
from hypothesis import strategies as st

from devtrace.contract.code_scanning import github_annotations, sarif
from devtrace.contract.entries import Entry
from devtrace.diagnosis.findings import Culprit, Edit, Finding, Line, Site, from_json, to_json
from folders import TESTS

SCHEMA: Final = json.loads((TESTS / "data" / "sarif-2.1.0.json").read_text())
"""From the npm package @microsoft/sarif-multitool-linux 5.7.0 (MIT), which ships OASIS's schema."""
VALIDATOR: Final = jsonschema.Draft202012Validator(SCHEMA)
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
FINDINGS = st.builds(
    Finding,
    st.sampled_from(["device-mismatch", "host-sync", "dtype-cost"]), st.sampled_from(["error", "warning", "note"]),
    st.sampled_from(["never-moved", ""]), TEXTS, st.none() | SITES, st.integers(-1, 9), st.none() | CULPRITS,
    st.integers(0, 9), st.integers(0, 9), WORDS, WORDS, EDITS.map(tuple), NUMBERS,
    st.lists(st.builds(Line, WORDS, SITES, WORDS), max_size=2).map(tuple),
)  # fmt: skip


@FEW
@given(FINDINGS)
def test_a_finding_read_back_from_json_is_the_same(finding: Finding) -> None:
    assert from_json(json.loads(json.dumps(to_json(finding)))) == finding


@FEW
@given(FINDINGS)
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
@given(st.lists(FINDINGS, max_size=3), st.lists(WORDS, max_size=2))
def test_any_findings_keep_the_schema_of_sarif(findings: list[Finding], notes: list[str]) -> None:
    VALIDATOR.validate(sarif(map(Entry, findings), notes, Path("/project")))


@FEW
@given(st.lists(FINDINGS, max_size=3))
def test_an_annotation_is_one_line_that_reads_back_as_its_message(findings: list[Finding]) -> None:
    for finding, line in zip(findings, github_annotations(map(Entry, findings), Path("/project")), strict=True):
        assert len(line.split("\n")) == len(line.split("\r")) == 1
        assert read_back(line)["message"].startswith(finding.message)


def read_back(line: str) -> dict[str, str]:
    """Read a command as GitHub's runner does."""
    _, command, message = line.split("::", 2)
    level, _, properties = command.partition(" ")
    read = dict(each.split("=", 1) for each in properties.split(","))
    return {"level": level, "message": unquoted(message), **{key: unquoted(value) for key, value in read.items()}}


def unquoted(text: str) -> str:
    for code, character in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(code, character)
    return text


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
