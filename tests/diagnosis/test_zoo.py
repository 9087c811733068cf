"""Healthy programs give no error and no warning: a false alarm costs more than a missed bug."""

from __future__ import annotations

from pathlib import Path

import pytest

from folders import TESTS
from programs import run
from warm import Warm

ZOO = sorted((TESTS / "zoo").glob("*.py"))
pytestmark = pytest.mark.one_in(4)


@pytest.mark.parametrize("path", ZOO, ids=lambda path: path.stem)
def test_a_healthy_program_raises_no_alarm(path: Path, warm: Warm) -> None:
    outcome = run(warm, path)
    assert (outcome.raised, outcome.alarms, outcome.notes) == ("", [], ())


@pytest.mark.parametrize("path", ZOO, ids=lambda path: path.stem)
def test_a_healthy_program_that_nobody_records_hears_nothing(path: Path, warm: Warm) -> None:
    outcome = run(warm, path, mode="untraced")
    assert (outcome.raised, outcome.text, outcome.findings, outcome.notes) == ("", "", (), ())
    assert "devtrace" not in run(warm, path, mode="installed").text
