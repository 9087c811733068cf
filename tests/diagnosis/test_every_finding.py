"""Every rule and every cause has its whole text in a golden, in both languages, from a program that has the bug.

Programs whose rule or cause is not in the corpus are in `findings/`: what costs time, jobs of several ranks, and what
nobody recorded. `report()` of each gives its report.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from corpus_programs import FAILING, PROGRAMS, SHOWN_IN_CHINESE
from devtrace.diagnosis.slugs import CauseSlug, RuleSlug
from devtrace.words import language
from devtrace.words.wrapping import columns
from folders import TESTS
from goldens import assert_golden
from sentences import TERMS
from warm import Warm

pytestmark = pytest.mark.one_in(5)

FILES = sorted((TESTS / "findings").glob("*.py"))
KNOWN = TERMS | {"DDP", "In", "KB", "B", "RuntimeError"}


@pytest.mark.parametrize("of", language.LANGUAGES)
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_report_of_a_finding_reads_like_its_golden(file: Path, of: language.Language, warm: Warm) -> None:
    text, slugs = warm.call("programs", "facts_in", of, str(file))
    assert file.stem in slugs
    assert max(map(columns, text.splitlines())) <= 100
    assert_golden(f"findings/{file.stem}.{of}.txt", f"{text}\n", TESTS)


def test_every_rule_and_every_cause_has_a_golden_in_both_languages() -> None:
    named = {file.stem for file in FILES}
    costs = {key.split()[1] for program in PROGRAMS for key in program.expected.get("findings", ())}
    shown = {(program.expected["rule"], program.cause) for program in SHOWN_IN_CHINESE if program in FAILING}
    of_dtypes = {
        ("dtype-mismatch", path.parents[1].name) for path in (TESTS / "dtypes" / "programs").rglob("report.zh.txt")
    }
    assert named | costs | {rule for rule, _ in shown | of_dtypes} >= set(get_args(RuleSlug))
    assert named | {cause for _, cause in shown | of_dtypes} == named | set(get_args(CauseSlug))
    assert shown == {(program.expected["rule"], program.cause) for program in FAILING}


def test_a_golden_in_chinese_has_no_english_but_code_names_and_torchs_words() -> None:
    goldens = {path.stem: path for path in (TESTS / "findings").glob("*.zh.txt")}
    goldens |= {path.parent.name: path for path in (TESTS / "corpus").rglob("report.zh.txt")}
    assert len(goldens) > len(FILES) + 20
    found = {name: english_of(path.read_text()) for name, path in goldens.items()}
    assert {name: words for name, words in found.items() if words} == {}


def english_of(text: str) -> list[str]:
    """Return words in Latin letters, two beside each other, in lines that begin as a sentence of ours does."""
    own = re.sub(r"\w+Error: .*?[.!]\n", "", text, flags=re.S)  # torch's words
    sentences = "\n".join(line for line in own.splitlines() if not re.match(r"  (?!\s*修复)\S", line))
    plain = re.sub(r"`[^`]*`|\S*[.:_=(]\S*", " ", sentences)
    return [pair for pair in re.findall(r"[A-Za-z]{2,} +[A-Za-z]{2,}", plain) if not set(pair.split()) <= KNOWN]
