"""The programs of the corpora: of `corpus/`, and of `dtypes/programs/`, which run on any device."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from devtrace.diagnosis.findings import Finding, Site
from folders import TESTS
from programs import Outcome, Program

CORPUS = TESTS / "corpus"
DTYPES = TESTS / "dtypes" / "programs"
COSTS = "costs"


def one_a_cause(programs: list[Program]) -> pytest.MarkDecorator:
    """Ask the first program of each cause and what costs time, and the others where there is time for them."""
    first = {program.folder.parent: program for program in reversed(programs)}
    cases = [
        pytest.param(
            program,
            marks=() if program.cause == COSTS or program == first[program.folder.parent] else pytest.mark.another,
            id=program.name,
        )
        for program in programs
    ]
    return pytest.mark.parametrize("program", cases)


def at(site: Site | None) -> str:
    assert site is not None
    return f"{Path(site.file).name}:{site.line}"


def assert_explains(finding: Finding, cause: str, expected: Mapping[str, Any]) -> None:
    """Hold a finding to all that is expected of it."""
    assert finding.culprit is not None
    said = {
        "rule": finding.rule,
        "cause": finding.cause,
        "culprit": finding.culprit.name,
        "dtype": finding.culprit.dtype,
        "devices": [*finding.devices],
        "born": finding.culprit.born and at(finding.culprit.born),
        "failed": at(finding.site),
        "fix": [f"{Path(edit.file).name}:{edit.line}" for edit in finding.edits],
        "who": ", ".join(re.findall(r"(?:On all \d ranks|[Rr]anks? \d(?: and \d)*)", finding.message)[:1]),
    }
    wanted = {"cause": cause, **{word: value for word, value in expected.items() if word in said}}
    assert {word: said[word] for word in wanted} == wanted


def costs_of(outcome: Outcome) -> Counter[str]:
    """Return how often each rule counted each line of a program that runs to its end."""
    assert (outcome.raised, outcome.errors) == ("", [])
    counts: Counter[str] = Counter()
    for finding in outcome.findings:
        counts[f"{at(finding.site)} {finding.rule}"] += finding.count
    return counts


PROGRAMS = [Program(path) for path in sorted(CORPUS.glob("*/*/bug.py"))]
FAILING = [program for program in PROGRAMS if program.cause != COSTS]
SHOWN_IN_CHINESE = [
    program
    for cause in sorted({program.cause for program in PROGRAMS})
    for program in sorted(
        (each for each in PROGRAMS if each.cause == cause),
        key=lambda each: (len(each.path.read_text()), each.name),
    )[: None if cause == COSTS else 2]
]
COSTLY = [program for program in PROGRAMS if program.cause == COSTS]

OF_DTYPES = [Program(path) for path in sorted(DTYPES.glob("*/*/bug.py"))]
