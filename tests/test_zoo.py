"""Healthy programs give no error and no warning: a false alarm costs more than a missed bug."""

from __future__ import annotations

from pathlib import Path

import pytest

from programs import run
from warm import Warm

ZOO = sorted(Path(__file__).with_name("zoo").glob("*.py"))


@pytest.mark.parametrize("path", ZOO, ids=lambda path: path.stem)
def test_a_healthy_program_raises_no_alarm(path: Path, warm: Warm) -> None:
    outcome = run(warm, path)
    assert (outcome.raised, outcome.alarms, outcome.notes) == ("", [], ())
