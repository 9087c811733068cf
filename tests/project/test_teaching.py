"""The checks of docs/teaching.md grade answers of students: thirty of three assignments, a row each."""

from __future__ import annotations

import importlib
import re
import runpy
import sys
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest

import devtrace
from documents import PAGES
from folders import ROOT, TESTS

CHECKS = dict(re.findall(r'^```python title="(?:tests/)?(q\d)(?:\.py)?"\n(.*?)^```', PAGES["teaching.md"], re.M | re.S))
ROWS = [line.split("\t") for line in (TESTS / "data" / "answers_of_students.tsv").read_text().splitlines()[1:]]


@pytest.mark.parametrize(("assignment", "verdict", "what", "answer"), ROWS, ids=[" ".join(row[:3]) for row in ROWS])
def test_a_check_knows_right_from_wrong(
    assignment: str, verdict: str, what: str, answer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: dict[str, Any] = {}
    exec(answer.replace("\\n", "\n"), names)
    if assignment == "q1":
        monkeypatch.syspath_prepend(Path(sys.prefix, "otter"))
        monkeypatch.chdir(tmp_path)  # otter keeps its log there
        Path("q1.py").write_text(CHECKS["q1"])
        otter: Any = importlib.import_module("otter")
        assert otter.Notebook(tests_dir=".").check("q1", global_env=names).passed_all == (verdict == "right")
        return
    refused = (RuntimeError, AssertionError, devtrace.DeviceError)
    with pytest.raises(refused) if verdict == "wrong" else nullcontext():
        exec(CHECKS[assignment], names)


@pytest.mark.parametrize("card", sorted((ROOT / "docs" / "cards").glob("*.py")), ids=lambda path: str(path.stem))
def test_a_card_shows_the_cause_that_it_is_named_after(card: Path) -> None:
    with suppress(RuntimeError), devtrace.record(simulate="cuda:1") as recording:
        runpy.run_path(str(card))
    assert recording.report.findings[0].cause == card.stem.replace("_", "-")


def test_the_page_counts_the_answers_that_were_tried() -> None:
    right = sum(row[1] == "right" for row in ROWS)
    assert f"{right} right and {len(ROWS) - right} wrong" in PAGES["teaching.md"]
