"""Programs with bugs of dtype: those that nobody recorded, and what a report says of the regions of autocast.

`tests/diagnosis/test_corpus.py` asks all else of a folder for each cause.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from corpus_programs import OF_DTYPES, assert_explains, one_a_cause
from devtrace.diagnosis.slugs import CASTS
from folders import TESTS
from programs import Program
from warm import Warm


def test_each_cause_of_a_dtype_has_a_program() -> None:
    own = {"numpy-boundary", "autocast-off", "python-number", "target-dtype", "not-registered", "stale-copy"}
    assert {program.cause for program in OF_DTYPES} == {*CASTS.values(), *own}


@one_a_cause([each for each in OF_DTYPES if each.cause != "stale-copy"])
def test_a_failure_that_nobody_recorded_has_the_same_cause(program: Program, warm: Warm) -> None:
    (finding,) = program.outcome(warm, "untraced").errors
    assert_explains(finding, program.cause, {word: program.expected[word] for word in ("culprit", "dtype", "failed")})


REGIONS = TESTS / "dtypes" / "programs" / "autocast" / "regions.py"
SENTENCES = {
    "retrieval_left": "An op under `torch.autocast` made it bfloat16, and this op runs outside of autocast "
    "(which ended in regions.py line 18).",
    "left_for_two_layers": "An op under `torch.autocast` made it bfloat16, and this op runs outside of autocast "
    "(which ended in regions.py line 30).",
    "switched_off": "An op under `torch.autocast` made it bfloat16; regions.py line 48 switches autocast off for "
    "this op.",
    "memory_in_region": "An op under `torch.autocast` made it bfloat16, and autocast casts nothing for this op.",
    "distances_by_the_list": "`torch.autocast` computes `_cdist_forward` in float32 by its own list, and casts nothing "
    "for this op.",
}


@pytest.mark.parametrize("name", SENTENCES)
def test_the_report_names_what_autocast_did_and_its_edit_works(name: str, warm: Warm, tmp_path: Path) -> None:
    program = Program(REGIONS, function=name)
    (finding,) = program.outcome(warm).errors
    assert (finding.rule, finding.cause) == ("dtype-mismatch", "autocast-off")
    assert finding.message.endswith(SENTENCES[name])
    repaired = program.edited(finding.edits, tmp_path).outcome(warm)
    assert (repaired.raised, repaired.alarms) == ("", [])


def test_what_a_region_made_is_cast_where_it_is_made(warm: Warm) -> None:
    (finding,) = Program(REGIONS, function="left_for_two_layers").outcome(warm).errors
    assert [edit.after for edit in finding.edits] == ["        code = encoder(x).to(x.dtype)"]
