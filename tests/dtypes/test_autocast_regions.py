"""What a report says of autocast, as a recording saw its regions: which op was in one, and where it was left."""

from __future__ import annotations

from pathlib import Path

import pytest

from devtrace.diagnosis.edits import applied
from folders import TESTS
from programs import run
from warm import Warm

PROGRAMS = TESTS / "dtypes" / "programs" / "autocast"
SENTENCES = {
    "retrieval_left": "An op under `torch.autocast` made it bfloat16, and this op ran outside of that (left in "
    "retrieval_left.py line 17).",
    "left_for_two_layers": "An op under `torch.autocast` made it bfloat16, and this op ran outside of that (left in "
    "left_for_two_layers.py line 8).",
    "switched_off": "An op under `torch.autocast` made it bfloat16; switched_off.py line 13 switches autocast off for "
    "this op.",
    "memory_in_region": "An op under `torch.autocast` made it bfloat16, and autocast casts nothing for this op.",
    "distances_by_the_list": "`torch.autocast` computes `_cdist_forward` in float32 by its own list, and casts nothing "
    "for this op.",
}


@pytest.mark.parametrize("name", SENTENCES)
def test_the_report_names_what_autocast_did_and_its_edit_works(name: str, warm: Warm, tmp_path: Path) -> None:
    file = PROGRAMS / f"{name}.py"
    (finding,) = run(warm, file, ("cpu",)).errors
    assert (finding.rule, finding.cause) == ("dtype-mismatch", "autocast-off")
    assert finding.message.endswith(SENTENCES[name])
    (changed := tmp_path / f"{name}.py").write_text(applied(file.read_text(), finding.edits))
    repaired = run(warm, changed, ("cpu",))
    assert (repaired.raised, repaired.alarms) == ("", [])


def test_the_line_that_left_a_region_is_put_into_one(warm: Warm) -> None:
    (finding,) = run(warm, PROGRAMS / "retrieval_left.py", ("cpu",)).errors
    (edit,) = finding.edits
    assert edit.after == (
        '    with torch.amp.autocast(device_type="cpu", dtype=torch.bfloat16):\n        scores = asked @ documents.T'
    )


def test_where_a_layer_takes_its_result_the_tensor_is_cast_instead(warm: Warm) -> None:
    (finding,) = run(warm, PROGRAMS / "left_for_two_layers.py", ("cpu",)).errors
    assert [edit.after for edit in finding.edits] == ["        code = encoder(x).to(x.dtype)"]
