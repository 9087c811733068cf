"""Bugs of dtype that nobody recorded; `tests/diagnosis/test_corpus.py` asks all else of these programs."""

from __future__ import annotations

from corpus_programs import OF_DTYPES, assert_explains, one_a_cause
from devtrace.diagnosis.slugs import CASTS
from programs import Program
from warm import Warm


def test_each_cause_of_a_dtype_has_a_program() -> None:
    own = {"numpy-boundary", "autocast-off", "python-number", "target-dtype", "not-registered", "stale-copy"}
    assert {program.cause for program in OF_DTYPES} == {*CASTS.values(), *own}


@one_a_cause([each for each in OF_DTYPES if each.cause != "stale-copy"])
def test_a_failure_that_nobody_recorded_has_the_same_cause(program: Program, warm: Warm) -> None:
    (finding,) = program.outcome(warm, "untraced").errors
    assert_explains(finding, program.cause, {word: program.expected[word] for word in ("culprit", "dtype", "failed")})
