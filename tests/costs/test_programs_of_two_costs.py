"""Programs as people write them, with two costs each: the larger one comes first, and what is advised is proven."""

from __future__ import annotations

from pathlib import Path

import pytest

from cost_proofs import Proofs, followed, mark_of, texts_in
from folders import TESTS

pytestmark = pytest.mark.one_in(6)

PROGRAMS = texts_in(TESTS / "costs" / "programs")
HEALTHY = texts_in(TESTS / "costs" / "programs" / "healthy")


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_larger_cost_comes_first_and_its_advice_ends_it(name: str, tmp_path: Path) -> None:
    text = PROGRAMS[name]
    proofs = Proofs(tmp_path / "program.py", text, name)
    found = proofs.warnings
    assert [mark_of(text, finding) for finding in found] == ["1", "2"]
    for number, finding in zip("12", found, strict=True):
        by_hand = followed(text, number)
        assert finding.help
        assert bool(finding.edits) != bool(by_hand)
        assert proofs.why_not(finding, by_hand) == ""
        left = [each for each in proofs.warnings if each.help == finding.help and each.rule == finding.rule]
        assert left == []


@pytest.mark.parametrize("name", HEALTHY)
def test_a_program_like_these_that_pays_what_it_has_to_hears_nothing(name: str, tmp_path: Path) -> None:
    assert Proofs(tmp_path / "program.py", HEALTHY[name], name).warnings == []
