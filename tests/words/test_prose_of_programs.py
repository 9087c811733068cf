"""The prose of findings of programs: every sentence is of the catalogue, and the text form keeps its width."""

from __future__ import annotations

import re

import pytest

from corpus_programs import SHOWN_IN_CHINESE, one_a_cause
from devtrace.report.text import text
from devtrace.words import language
from devtrace.words.wrapping import columns
from folders import TESTS
from programs import Program, diagnosed, pseudo_report_of, speaking
from sentences import CLOSE, OPEN
from warm import Warm

PROGRAMS = (
    "attached-after-move", "not-registered", "created-without-device", "never-moved", "stale-copy", "wrong-device",
    "host-boundary", "generator-device", "default-device", "costs",
)  # fmt: skip


@pytest.mark.one_in(5)
@pytest.mark.parametrize("cause", PROGRAMS)
def test_every_sentence_of_a_finding_is_of_the_catalogue(cause: str, warm: Warm) -> None:
    folders = (TESTS / "corpus" / cause).iterdir()
    folder = min(folders, key=lambda folder: (len((folder / "bug.py").read_text()), folder.name))
    findings = warm.call("programs", pseudo_report_of.__name__, str(folder / "bug.py"))
    assert findings
    for message, help, remarks in findings:
        for each in filter(None, (message, help, *remarks)):
            assert (each[0], each[-1]) == (OPEN, CLOSE)


WIDTHS = (60, 80, 100, 120)
INDENT = 12
"""Columns that a label and its indent take at most."""


@pytest.mark.parametrize("of", language.LANGUAGES)
@one_a_cause(SHOWN_IN_CHINESE)
def test_the_text_form_fits_its_width_and_breaks_no_code_that_fits_on_a_line(
    of: language.Language, program: Program, warm: Warm
) -> None:
    outcome = program.outcome(warm, "zh" if of == "zh" else "recorded")
    with speaking(of):
        report = diagnosed(outcome.case)
        by_width = {width: text(report, width) for width in WIDTHS}
    serious = [finding for finding in outcome.findings if finding.severity != "note"]
    sentences = [sentence for finding in serious for sentence in (finding.message, finding.help)]
    codes = {code for each in sentences for code in re.findall("`[^`\n]*`", each)}
    for width, shown in by_width.items():
        assert max(map(columns, shown.splitlines())) <= width
        assert [code for code in codes if columns(code) <= width - INDENT and code not in shown] == []
